//! What a model's tokens cost.
//!
//! Owns the table that comes with Writ (`data/prices.json`), a human's own prices above it, and the sum of a count. Refuses to guess:
//! a model without a price has none, and whoever asks is told so. Invariant: money is counted in whole numbers from the price to the
//! sum, and rounded once, up, for each agent (R26). Page: `spec/limits.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use writ_clients::meter::AgentUse;
use writ_clients::usage::plain_model;
use writ_clients::usage::{Rate, Tokens};
use writ_core::{Digest, Money, json};
use writ_store::{Store, StoreError, regular_file};

/// The table that comes with Writ.
const SHIPPED: &str = include_str!("../../data/prices.json");
/// A human's own prices, in the state folder.
const OWN: &str = "prices.json";
/// Largest table.
const MAX_TABLE: u64 = 4 << 20;
/// What a search costs in pico-dollars for each micro-dollar of its price.
const SEARCH: u128 = 1_000_000;
/// What a request costs that is answered within a region of the user's choice, in thousandths.
const REGIONAL: u128 = 1100;

/// A price in dollars, written as a text: `"0.30"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub Money);

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.to_string().trim_start_matches('$'))
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| Money::parse(text).map(Self).ok_or("expected dollars as in `0.30`");
        json::read_text(deserializer, read)
    }
}

/// What one model costs: dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Price {
    /// The model, without a date.
    pub model: String,
    /// Read, and not from a cache.
    pub input: Dollars,
    /// Written.
    pub output: Dollars,
    /// Read from a cache.
    pub cache_read: Dollars,
    /// Written to a cache for five minutes.
    pub cache_write: Dollars,
    /// Written to a cache for an hour.
    pub cache_write_hour: Dollars,
    /// One search of the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Dollars>,
    /// How many times that, in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<f64>,
    /// How many times that, at a speed that has its own price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast: Option<f64>,
    /// How many times that, for a request that reads much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Long>,
}

/// A request that reads much costs more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// More tokens than this; a multiple of 100,000.
    pub above: u64,
    /// How many times the price.
    pub times: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Table {
    version: u64,
    #[serde(default)]
    date: String,
    #[serde(default)]
    source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    models: Vec<Price>,
}

/// Every price that is known here.
#[derive(Clone, Debug)]
pub struct Prices {
    /// The day of the table that came with Writ.
    pub date: String,
    /// Where that is from.
    pub source: String,
    /// By model, and whether a human set it here.
    pub models: BTreeMap<String, (Price, bool)>,
}

/// A table that does not read.
#[derive(Debug, thiserror::Error)]
#[error("the prices in {} do not read: {why}; `writ prices set` writes them", path.display())]
pub struct PricesError {
    path: PathBuf,
    why: String,
}

/// A factor in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price list's factor, held within bounds"
)]
fn thousandths(times: f64) -> u128 {
    (times.clamp(0.0, 1000.0) * 1000.0).round() as u128
}

impl Price {
    /// What tokens at a rate cost, in pico-dollars; `None` where this rate has no price.
    fn of(&self, rate: &Rate, tokens: Tokens) -> Option<u128> {
        let cost = |count: u64, price: Dollars| u128::from(count) * u128::from(price.0.micros());
        let kinds = cost(tokens.input, self.input)
            + cost(tokens.output, self.output)
            + cost(tokens.cache_read, self.cache_read)
            + cost(tokens.cache_write, self.cache_write)
            + cost(tokens.cache_write_hour, self.cache_write_hour);
        let mut sum = kinds;
        let mut times = |thousandths: u128| sum = (sum * thousandths).div_ceil(1000);
        if rate.fast {
            times(thousandths(self.fast?));
        }
        if rate.batch {
            times(thousandths(self.batch.unwrap_or(1.0)));
        }
        if rate.regional {
            times(REGIONAL);
        }
        if let Some(long) = self.long.filter(|long| rate.length * 100_000 >= long.above) {
            times(thousandths(long.times));
        }
        if tokens.searches > 0 {
            sum += cost(tokens.searches, self.search?) * SEARCH;
        }
        Some(sum)
    }
}

/// A model's name as the services of other companies wrap it: `us.anthropic.NAME-v1:0`, `NAME@20260101`.
fn unwrapped(model: &str) -> &str {
    let model = model.rsplit_once("anthropic.").map_or(model, |(_, name)| name);
    let model = model.split(['@', ':']).next().unwrap_or(model);
    match model.rsplit_once("-v") {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => model,
    }
}

impl Prices {
    /// What is known here: the shipped table, and above it what a human set.
    pub fn open(state: &Path) -> Result<Self, PricesError> {
        let path = state.join(OWN);
        let wrong = |why: String| PricesError { path: path.clone(), why };
        let shipped: Table = json::from_slice(SHIPPED.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        let mut prices = Self { date: shipped.date, source: shipped.source, models: BTreeMap::new() };
        prices.add(shipped.models, false);
        match regular_file::read(&path, MAX_TABLE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrong(error.to_string())),
            Ok(bytes) => {
                let own: Table = json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
                prices.add(own.models, true);
            }
        }
        Ok(prices)
    }

    /// Reads a table that a session kept.
    pub fn kept(bytes: &[u8]) -> Option<Self> {
        let table: Table = json::from_slice(bytes).ok()?;
        let mut prices = Self { date: table.date, source: table.source, models: BTreeMap::new() };
        prices.add(table.models, false);
        Some(prices)
    }

    fn add(&mut self, models: Vec<Price>, own: bool) {
        self.models.extend(models.into_iter().map(|price| (price.model.clone(), (price, own))));
    }

    fn table(&self, own: bool) -> Table {
        let models = self.models.values().filter(|(_, set)| *set || !own).map(|(price, _)| price.clone()).collect();
        Table { version: 1, date: self.date.clone(), source: self.source.clone(), unit: String::new(), models }
    }

    /// The whole table as a session keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_canonical(&self.table(false)).into_bytes()
    }

    /// Digest of the whole table.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// Sets a model's price on this machine, or takes a human's away.
    pub fn set(&mut self, model: &str, price: Option<Price>, store: &Store) -> Result<(), StoreError> {
        match price {
            Some(price) => drop(self.models.insert(model.to_owned(), (price, true))),
            None => drop(self.models.remove(model)),
        }
        store.keep(OWN, json::to_canonical(&self.table(true)).as_bytes())
    }

    /// The price of a model, under its own name, without a date, or as others wrap it.
    pub fn of(&self, model: &str) -> Option<&Price> {
        let names = [model, plain_model(model), plain_model(unwrapped(model))];
        names.iter().find_map(|name| self.models.get(*name)).map(|(price, _)| price)
    }

    /// Takes from other prices those that an agent's use needs and that are not here.
    pub fn learn(&mut self, agent: &AgentUse, others: &Self) {
        for (rate, tokens) in &agent.used {
            let known = self.of(&rate.model).and_then(|price| price.of(rate, *tokens)).is_some();
            if let Some(price) = others.of(&rate.model).filter(|_| !known) {
                self.models.insert(price.model.clone(), (price.clone(), false));
            }
        }
    }

    /// What an agent's use costs, rounded up to a micro-dollar; else a model that has no price at the rate that was used.
    pub fn cost(&self, agent: &AgentUse) -> Result<Money, String> {
        let mut sum: u128 = 0;
        for (rate, tokens) in agent.used.iter().filter(|(_, tokens)| !tokens.is_nothing()) {
            let cost = self.of(&rate.model).and_then(|price| price.of(rate, *tokens));
            sum = sum.saturating_add(cost.ok_or_else(|| described(rate))?);
        }
        Ok(Money::from_micros(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX >> 11)))
    }
}

/// A rate as people are told of one that has no price.
fn described(rate: &Rate) -> String {
    let name: String =
        if rate.model.is_empty() { "without a name".to_owned() } else { rate.model.chars().take(64).collect() };
    if rate.fast { format!("{name} (fast)") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Prices {
        Prices::open(Path::new("/nowhere")).unwrap()
    }

    fn used(model: &str, tokens: Tokens) -> AgentUse {
        AgentUse { used: vec![(Rate { model: model.to_owned(), ..Rate::default() }, tokens)], ..AgentUse::default() }
    }

    #[test]
    fn a_count_costs_what_its_client_says() {
        // What Claude Code 2.1.329 said that this came to.
        let tokens =
            Tokens { input: 600, output: 120, cache_read: 6000, cache_write: 2400, cache_write_hour: 600, searches: 2 };
        assert_eq!(shipped().cost(&used("claude-sonnet-4-5", tokens)), Ok(Money::from_micros(38_000)));
        let small = Tokens { input: 1, ..Tokens::default() };
        assert_eq!(shipped().cost(&used("claude-haiku-4-5-20251001", small)), Ok(Money::from_micros(1)));
        assert_eq!(shipped().cost(&used("claude-3-5-haiku-20241022", small)), Ok(Money::from_micros(1)), "rounded up");
        assert_eq!(
            shipped().cost(&used("us.anthropic.claude-sonnet-4-5-20250929-v1:0", tokens)),
            Ok(Money::from_micros(38_000))
        );
        assert_eq!(shipped().cost(&used("claude-sonnet-4-5@20250929", tokens)), Ok(Money::from_micros(38_000)));
    }

    #[test]
    fn rates_have_prices_of_their_own() {
        let thousand = Tokens { input: 1000, ..Tokens::default() };
        let cost = |rate: Rate, tokens| shipped().cost(&AgentUse { used: vec![(rate, tokens)], ..AgentUse::default() });
        let opus = Rate { model: "claude-opus-4-6".to_owned(), ..Rate::default() };
        let micros = |rate| cost(rate, thousand).map(Money::micros);
        assert_eq!(micros(opus.clone()), Ok(5000));
        assert_eq!(micros(Rate { fast: true, ..opus.clone() }), Ok(30_000));
        assert_eq!(micros(Rate { batch: true, ..opus.clone() }), Ok(2500));
        assert_eq!(micros(Rate { regional: true, ..opus }), Ok(5500));
        let haiku = |read| {
            let rate = Rate { model: "claude-haiku-5-5".to_owned(), length: Rate::length_of(read), ..Rate::default() };
            cost(rate, Tokens { input: read, ..Tokens::default() }).map(Money::micros)
        };
        assert_eq!((haiku(100_000), haiku(120_000)), (Ok(10_000), Ok(60_000)));
        assert_eq!(
            micros(Rate { model: "claude-opus-4-5".to_owned(), fast: true, ..Rate::default() }),
            Err("claude-opus-4-5 (fast)".to_owned())
        );
    }

    #[test]
    fn a_model_without_a_price_costs_nothing_only_where_it_did_nothing() {
        assert_eq!(shipped().cost(&used("gpt-x", Tokens { output: 1, ..Tokens::default() })), Err("gpt-x".to_owned()));
        assert_eq!(shipped().cost(&used("gpt-x", Tokens::default())), Ok(Money::default()));
    }

    #[test]
    fn a_humans_price_goes_before_the_shipped_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().to_owned()).unwrap();
        let mut prices = Prices::open(folder.path()).unwrap();
        let before = prices.digest();
        let price =
            Price { input: Dollars(Money::from_micros(7_000_000)), ..prices.of("claude-opus-5").unwrap().clone() };
        let price = Price { model: "mine".to_owned(), ..price };
        prices.set("mine", Some(price), &store).unwrap();
        let read = Prices::open(folder.path()).unwrap();
        let million = Tokens { input: 1_000_000, ..Tokens::default() };
        assert_eq!(read.cost(&used("mine", million)), Ok(Money::from_micros(7_000_000)));
        assert!(read.digest() != before && Prices::kept(&read.to_bytes()).unwrap().digest() == read.digest());
        prices.set("mine", None, &store).unwrap();
        assert_eq!(Prices::open(folder.path()).unwrap().digest(), before);
        std::fs::write(folder.path().join(OWN), "{}").unwrap();
        assert!(Prices::open(folder.path()).is_err());
    }
}
