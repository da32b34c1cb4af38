use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::claude_code::ClaudeCode;
use crate::usage::plain_model;

struct Talk {
    _folder: tempfile::TempDir,
    main: PathBuf,
}

impl Talk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("talk.jsonl");
        fs::create_dir_all(folder.path().join("talk/subagents")).unwrap();
        fs::write(&main, "").unwrap();
        Self { _folder: folder, main }
    }

    fn of(&self, agent: &str) -> PathBuf {
        self.main.with_extension("").join(format!("subagents/agent-{agent}.jsonl"))
    }

    fn add(path: &Path, text: &str) {
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn read(&self, meter: &mut Meter) -> bool {
        meter.read(&ClaudeCode, &self.main).unwrap()
    }
}

fn line(id: &str, input: u64, output: u64) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
    ) + "\n"
}

fn used(meter: &Meter, agent: &str) -> (u64, u64) {
    let tokens = meter.agents().get(agent).map(AgentUse::tokens).unwrap_or_default();
    (tokens.input, tokens.output)
}

#[test]
fn a_message_counts_once_however_often_it_is_told() {
    let (talk, mut meter) = (Talk::new(), Meter::default());
    Talk::add(&talk.main, &line("a", 100, 20).repeat(3));
    assert!(talk.read(&mut meter) && !talk.read(&mut meter));
    // Its last block comes after the reading, and with what it used in the end.
    Talk::add(&talk.main, &line("a", 100, 25));
    assert!(talk.read(&mut meter));
    assert_eq!(used(&meter, MAIN), (100, 25));
    // A subagent that begins with a copy of the conversation did not use what was used before.
    Talk::add(&talk.of("x"), &(line("a", 100, 25) + &line("b", 7, 3)));
    talk.read(&mut meter);
    assert_eq!((used(&meter, MAIN), used(&meter, "x")), ((100, 25), (7, 3)));
    // Whatever others say meanwhile, a message that an agent is in the middle of may grow.
    let (other, mut beside) = (Talk::new(), Meter::default());
    Talk::add(&other.main, &line("grows", 1, 1));
    other.read(&mut beside);
    (0..100).for_each(|number| Talk::add(&other.of("x"), &line(&format!("x{number}"), 1, 1)));
    other.read(&mut beside);
    Talk::add(&other.main, &line("grows", 1, 200));
    other.read(&mut beside);
    assert_eq!((used(&beside, MAIN), used(&beside, "x")), ((1, 200), (100, 100)));
    for agent in 0..20 {
        (0..40).for_each(|at| Talk::add(&other.of(&format!("y{agent}")), &line(&format!("y{agent}-{at}"), 1, 1)));
    }
    other.read(&mut beside);
    Talk::add(&other.main, &line("grows", 1, 300));
    other.read(&mut beside);
    assert_eq!((used(&beside, MAIN), beside.messages.growing.len()), ((1, 300), ALL_GROWING));
    // Long ago, or in a file that was written anew.
    for number in 0..200 {
        Talk::add(&talk.main, &line(&format!("n{number}"), 1, 1));
    }
    talk.read(&mut meter);
    Talk::add(&talk.main, &line("a", 999, 999));
    talk.read(&mut meter);
    assert_eq!(used(&meter, MAIN), (300, 225));
    fs::write(&talk.main, line("c", 1, 1) + &line("n7", 1, 1)).unwrap();
    talk.read(&mut meter);
    assert_eq!(used(&meter, MAIN), (301, 226));
}

#[test]
fn what_comes_late_is_caught_up_with_and_what_is_kept_comes_out_the_same() {
    let (talk, mut meter) = (Talk::new(), Meter::default());
    let (whole, late) = (line("a", 10, 1), line("b", 10, 1));
    let (half, rest) = late.split_at(20);
    Talk::add(&talk.main, &(whole + half));
    talk.read(&mut meter);
    assert_eq!(used(&meter, MAIN), (10, 1));
    Talk::add(&talk.main, rest);
    fs::write(talk.of("x").with_extension("meta.json"), r#"{"agentType":"worker","toolUseId":"t1"}"#).unwrap();
    Talk::add(&talk.of("x"), &line("c", 5, 5));
    let mut kept = Meter::from_bytes(&meter.to_bytes()).unwrap();
    assert_eq!(kept, meter);
    talk.read(&mut kept);
    let mut anew = Meter::default();
    talk.read(&mut anew);
    assert_eq!((used(&kept, MAIN), used(&kept, "x")), ((20, 2), (5, 5)));
    assert_eq!(anew.agents(), kept.agents());
    let note = &kept.agents()["x"].note;
    assert_eq!((note.kind.as_deref(), note.call.as_deref()), (Some("worker"), Some("t1")));
    for cut in 0..kept.to_bytes().len() {
        let read = Meter::from_bytes(&kept.to_bytes()[..cut]);
        assert!(read.is_none_or(|read| read.messages.counted.len() < kept.messages.counted.len()), "{cut}");
    }
}

#[test]
fn what_only_the_client_tells_of_is_the_main_agents() {
    let (talk, mut meter) = (Talk::new(), Meter::default());
    let total = |main: u64, small: u64| {
        format!(
            r#"{{"type":"cost-state","modelUsage":{{"m[1m]":{{"inputTokens":{main},"outputTokens":2}},"s-20260101":{{"inputTokens":{small}}}}}}}"#
        ) + "\n"
    };
    Talk::add(&talk.main, &(line("a", 10, 1) + &total(15, 4)));
    Talk::add(&talk.of("x"), &line("b", 5, 1));
    talk.read(&mut meter);
    assert_eq!((used(&meter, MAIN), used(&meter, "x")), ((14, 1), (5, 1)));
    // It goes on; the client's word is older than the messages: they add to what it said, and nothing counts twice.
    Talk::add(&talk.main, &line("c", 100, 10));
    talk.read(&mut meter);
    assert_eq!(used(&meter, MAIN), (114, 11));
    Talk::add(&talk.main, &total(115, 6));
    talk.read(&mut meter);
    assert_eq!(used(&meter, MAIN), (116, 11));
    assert_eq!((plain_model("claude-x-5[1m]"), plain_model("claude-x-5-20260101")), ("claude-x-5", "claude-x-5"));
}

#[test]
fn what_only_the_client_told_of_is_not_used_up_by_what_is_said_later() {
    let total =
        |input: u64| format!(r#"{{"type":"cost-state","modelUsage":{{"m":{{"inputTokens":{input}}}}}}}"#) + "\n";
    let (talk, mut meter) = (Talk::new(), Meter::default());
    let mut step = |path: &Path, text: &str, main: u64| {
        Talk::add(path, text);
        talk.read(&mut meter);
        meter = Meter::from_bytes(&meter.to_bytes()).unwrap();
        assert_eq!(used(&meter, MAIN).0, main, "{text}");
    };
    step(&talk.main, &(line("a", 10, 0) + &total(90)), 90);
    // A message of a subagent may reach its file after the total that knows it.
    step(&talk.of("x"), &line("late", 5, 0), 85);
    for (number, main) in [(1, 95), (2, 105)] {
        step(&talk.main, &line(&format!("b{number}"), 10, 0), main);
        step(&talk.of("y"), &line(&format!("c{number}"), 20, 0), main);
    }
    // A client that began anew with its sum takes nothing back.
    step(&talk.main, &total(30), 105);
    step(&talk.main, &(line("d", 10, 0) + &total(170)), 125);
    // Read at once, it comes out the same.
    let mut anew = Meter::default();
    talk.read(&mut anew);
    assert_eq!(anew.agents(), meter.agents());
}

/// By their moments it is known which messages of subagents a total knows, however late they are read.
#[test]
fn a_total_knows_no_message_that_was_told_after_it() {
    let total =
        |input: u64| format!(r#"{{"type":"cost-state","modelUsage":{{"m":{{"inputTokens":{input}}}}}}}"#) + "\n";
    let at = |line: String, second: u64| {
        line.replacen('{', &format!(r#"{{"timestamp":"2026-11-26T10:00:{second:02}.000Z","#), 1)
    };
    let (talk, mut meter) = (Talk::new(), Meter::default());
    let mut step = |path: &Path, text: &str| {
        Talk::add(path, text);
        talk.read(&mut meter);
        meter = Meter::from_bytes(&meter.to_bytes()).unwrap();
        let mut anew = Meter::default();
        talk.read(&mut anew);
        assert_eq!(anew.agents(), meter.agents(), "{text}");
        used(&meter, MAIN).0
    };
    assert_eq!(step(&talk.main, &(at(line("a", 10, 0), 1) + &total(90))), 90);
    assert_eq!(step(&talk.of("x"), &at(line("late", 5, 0), 2)), 85);
    assert_eq!(step(&talk.main, &at(line("b", 10, 0), 10)), 95);
    assert_eq!(step(&talk.of("y"), &at(line("c", 60, 0), 12)), 95);
    assert_eq!(step(&talk.of("x"), &at(line("later", 5, 0), 3)), 90, "of before the total");
    assert_eq!(step(&talk.main, &total(180)), 110);
}

#[test]
fn what_cannot_be_read_is_told() {
    let (talk, mut meter) = (Talk::new(), Meter::default());
    Talk::add(&talk.main, "{\"type\":\"assistant\",\"message\":{\"id\":\"a\",\"usage\":{\"input_tokens\":\"3\"}}}\n");
    talk.read(&mut meter);
    assert_eq!(meter.unread(), 1);
    assert!(meter.read(&ClaudeCode, Path::new("/nowhere/talk.jsonl")).is_err());
}
