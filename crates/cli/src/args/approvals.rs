//! `writ approvals`, `writ approve` and `writ deny`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use writ_engine::decide::approvals::Lasts;

use super::FormatArgs;

/// Longest time that a word may last by the clock.
const MOST_HOURS: i64 = 7 * 24;

#[derive(ClapArgs, Debug)]
pub struct ApprovalsArgs {
    /// One session alone.
    #[arg(long)]
    pub session: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(ClapArgs, Debug)]
pub struct ApproveArgs {
    /// The call's short digest, from the message that asked; lists what waits when left out.
    #[arg(conflicts_with_all = ["list", "revoke"])]
    pub call: Option<String>,
    /// List what was said of calls and still stands.
    #[arg(long, conflicts_with_all = ["lasts", "key"])]
    pub list: bool,
    /// Take a word back: the short digest that `--list` shows.
    #[arg(long, value_name = "ID", conflicts_with_all = ["list", "lasts", "key"])]
    pub revoke: Option<String>,
    #[command(flatten)]
    pub word: WordArgs,
}

#[derive(ClapArgs, Debug)]
pub struct AnswerArgs {
    /// The call's short digest, from the message that asked or from `writ approvals`.
    pub call: String,
    #[command(flatten)]
    pub word: WordArgs,
}

#[derive(ClapArgs, Debug)]
pub struct WordArgs {
    /// How long it is to hold, as often as the call is made: `90s`, `10m`, `2h`, or `session`.
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    pub lasts: Option<Lasts>,
    /// A private key of your own to sign with (PEM); its public half is pinned with `writ keys trust`.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The session; the one in which that call waits when left out.
    #[arg(long)]
    pub session: Option<String>,
}

/// `10m` or `session`.
fn lasts(text: &str) -> Result<Lasts, String> {
    if text == "session" {
        return Ok(Lasts::Session);
    }
    let wrong = || format!("write `90s`, `10m`, `2h` or `session`, at most {MOST_HOURS}h");
    let unit = text.chars().next_back().and_then(|unit| match unit {
        's' => Some(1_000),
        'm' => Some(60_000),
        'h' => Some(3_600_000),
        _ => None,
    });
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u32>().ok());
    let millis = unit.zip(number).map(|(unit, number)| i64::from(number) * unit).ok_or_else(wrong)?;
    if (1..=MOST_HOURS * 3_600_000).contains(&millis) { Ok(Lasts::Millis(millis)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, millis) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("168h", 604_800_000)] {
            assert_eq!(lasts(text), Ok(Lasts::Millis(millis)), "{text}");
        }
        assert_eq!(lasts("session"), Ok(Lasts::Session));
        for text in ["", "m", "0m", "10", "-1m", "1.5h", "169h", "10d", "Session", "10м"] {
            assert!(lasts(text).is_err(), "{text}");
        }
    }
}
