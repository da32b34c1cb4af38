//! `writ limits` and `writ prices`.

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use writ_policy::Measure;

use super::FormatArgs;

#[derive(Subcommand, Debug)]
pub enum LimitsCommand {
    /// Show what a session used, and of how much, agent by agent.
    Show {
        /// The session; the newest of this repository when left out.
        session: Option<String>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Raise a limit for one session, so that it can go on. Only a human at a terminal can.
    #[command(
        after_help = "Examples:\n  writ limits raise maxSpendUSD 10\n  writ limits raise maxToolCalls 400 --session 7c0f…\n  writ limits raise maxSpendUSD 2 --agent Explore\n\nThe new limit is for the whole session, what it \
        used before included. It is recorded, and void under another policy."
    )]
    Raise(RaiseArgs),
}

#[derive(ClapArgs, Debug)]
pub struct RaiseArgs {
    /// Which limit, as the policy names it.
    #[arg(value_parser = PossibleValuesParser::new(Measure::ALL.map(Measure::name)))]
    pub limit: String,
    /// What it is to be: dollars, tokens, turns, seconds or calls.
    pub to: String,
    /// The type of sub-agents whose limit it is; the session's when left out.
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
    /// The session; the newest of this repository when left out.
    #[arg(long)]
    pub session: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum PricesCommand {
    /// Show what models cost: the list that comes with Writ, and prices set here.
    #[command(after_help = "Examples:\n  writ prices show\n  writ prices show claude-opus-5 --format json")]
    Show {
        /// A model; all are shown when left out.
        model: Option<String>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Set what a model costs on this machine, in US dollars for a million tokens. Sessions that run keep the prices they began with.
    #[command(
        after_help = "Examples:\n  writ prices set my-model --input 3 --output 15\n  writ prices set claude-opus-5 --input 4 --output 20 --cache-read 0.40\n\nLeft out, reading from a cache \
        costs as input does, writing to one 1.25 times and, for an hour, twice as much."
    )]
    Set(PriceArgs),
    /// Take a price that was set here away.
    Remove {
        /// The model.
        model: String,
    },
}

#[derive(ClapArgs, Debug)]
pub struct PriceArgs {
    /// The model, as its provider names it; a date behind the name does not count.
    pub model: String,
    /// What it reads.
    #[arg(long, value_name = "USD")]
    pub input: String,
    /// What it writes.
    #[arg(long, value_name = "USD")]
    pub output: String,
    /// What it reads from a cache.
    #[arg(long, value_name = "USD")]
    pub cache_read: Option<String>,
    /// What it writes to a cache.
    #[arg(long, value_name = "USD")]
    pub cache_write: Option<String>,
    /// What it writes to a cache that lasts an hour.
    #[arg(long, value_name = "USD")]
    pub cache_write_hour: Option<String>,
    /// One search of the web.
    #[arg(long, value_name = "USD")]
    pub search: Option<String>,
    /// How many times that, where it is asked to be fast.
    #[arg(long, value_name = "TIMES")]
    pub fast: Option<f64>,
}
