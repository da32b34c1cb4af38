//! `writ prices`: what models cost, and a human's own prices.

use std::collections::BTreeMap;

use serde::Serialize;
use writ_core::Money;
use writ_engine::limits::prices::{Dollars, Price, Prices};

use crate::args::{Format, PriceArgs, PricesCommand};
use crate::commands::session_lookup::store;
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Shows, sets or removes.
pub fn run(command: &PricesCommand) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    let mut prices = Prices::open(store.root()).map_err(Failure::could_not)?;
    match command {
        PricesCommand::Show { model, format } => show(prices, model.as_deref(), format.format),
        PricesCommand::Set(args) => {
            human_check::not_agent("set prices")?;
            let price = price(args)?;
            prices.set(&args.model, Some(price.clone()), &store).map_err(Failure::could_not)?;
            output::line(format!("{} {}", output::good("✓"), output::plain(&described(&price))));
            Ok(())
        }
        PricesCommand::Remove { model } => {
            human_check::not_agent("set prices")?;
            if !prices.models.get(model).is_some_and(|(_, own)| *own) {
                return Err(Failure::could_not(format!("no price of `{model}` was set here")));
            }
            prices.set(model, None, &store).map_err(Failure::could_not)?;
            output::line(format!("{} the price of {} is gone", output::good("✓"), output::plain(model)));
            Ok(())
        }
    }
}

/// The list as a document.
#[derive(Serialize)]
struct Shown<'a> {
    date: &'a str,
    source: &'a str,
    models: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    price: &'a Price,
    /// Whether it was set on this machine.
    own: bool,
}

fn show(mut prices: Prices, model: Option<&str>, format: Format) -> Result<(), Failure> {
    if let Some(name) = model {
        let Some(price) = prices.of(name).cloned() else {
            return Err(Failure::could_not(format!(
                "there is no price for `{name}`: `writ prices set {name} --input USD --output USD` sets one"
            )));
        };
        let own = prices.models.get(&price.model).is_some_and(|(_, own)| *own);
        prices.models = BTreeMap::from([(price.model.clone(), (price, own))]);
    }
    if format == Format::Json {
        let models = prices.models.values().map(|(price, own)| Entry { price, own: *own }).collect();
        output::print_json(&Shown { date: &prices.date, source: &prices.source, models });
        return Ok(());
    }
    output::line(format!("US dollars for a million tokens, of {} ({})", prices.date, prices.source));
    output::line(output::dim(format!(
        "{:<24} {:>8} {:>8} {:>11} {:>12} {:>12}",
        "model", "input", "output", "cache read", "cache write", "for an hour"
    )));
    for (price, own) in prices.models.values() {
        let own = if *own { "  set here" } else { "" };
        output::line(output::plain(&format!("{}{own}", described(price))));
    }
    Ok(())
}

fn described(price: &Price) -> String {
    let kinds = [price.input, price.output, price.cache_read, price.cache_write, price.cache_write_hour];
    let [input, output, read, write, hour] = kinds.map(|Dollars(money)| money.to_string());
    format!("{:<24} {input:>8} {output:>8} {read:>11} {write:>12} {hour:>12}", price.model)
}

fn price(args: &PriceArgs) -> Result<Price, Failure> {
    let dollars = |text: &str| {
        let read = Money::parse(text.trim_start_matches('$'));
        read.ok_or_else(|| Failure::Usage(format!("`{text}` is no price: write dollars, as in `3` or `0.30`")))
    };
    let given = |text: Option<&String>| text.map(|text| dollars(text).map(Dollars)).transpose();
    let input = dollars(&args.input)?;
    let times = |quarters: u64| Dollars(Money::from_micros(input.micros().saturating_mul(quarters).div_ceil(4)));
    Ok(Price {
        model: args.model.clone(),
        input: Dollars(input),
        output: Dollars(dollars(&args.output)?),
        cache_read: given(args.cache_read.as_ref())?.unwrap_or_else(|| times(4)),
        cache_write: given(args.cache_write.as_ref())?.unwrap_or_else(|| times(5)),
        cache_write_hour: given(args.cache_write_hour.as_ref())?.unwrap_or_else(|| times(8)),
        search: given(args.search.as_ref())?,
        batch: None,
        fast: args.fast.filter(|times| (0.0..=1000.0).contains(times)),
        long: None,
    })
}
