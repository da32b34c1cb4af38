//! `kill -9` at any moment: no answered call is lost, and the next call works.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use workplace::{SESSION, Workplace};

const KILLS: u64 = 500;
/// Whole calls that are timed first, to know when a kill hits.
const TIMED: u64 = 20;

/// xorshift64*: the same moments, as parts of a call's time, on every run.
fn random(state: &mut u64) -> f64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
}

/// Starts the hook on a call, kills it after `delay`, and says whether it had answered, and whether the kill hit.
fn kill(place: &Workplace, id: &str, delay: Duration) -> (bool, bool) {
    let start = Instant::now();
    let mut child = place.command(&["hook"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(place.write_call(id, "src/module.rs").as_bytes()).unwrap();
    thread::sleep(delay.saturating_sub(start.elapsed()));
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("deny"), "call {id}: {text}");
    (text.ends_with('}'), output.status.code().is_none())
}

#[test]
fn no_answered_call_is_lost_to_500_kills() {
    let place = Workplace::new("killed");
    place.start();
    let mut answered = BTreeSet::new();
    let start = Instant::now();
    for number in 0..TIMED {
        place.allowed(&format!("timed-{number}"));
        answered.insert(format!("timed-{number}"));
    }
    let whole = start.elapsed() / TIMED as u32;
    let (mut state, mut hits, mut survived) = (0x9e37_79b9_7f4a_7c15, 0, 0);
    for number in 0..KILLS {
        let id = format!("killed-{number}");
        let (answer, hit) = kill(&place, &id, whole.mul_f64(random(&mut state) * 1.3));
        hits += u64::from(hit);
        if answer {
            survived += 1;
            answered.insert(id);
        }
        place.allowed(&format!("next-{number}"));
        answered.insert(format!("next-{number}"));
    }
    // Without kills that hit, and answers that came before one, this test would say nothing.
    assert!(hits > KILLS / 10 && survived > 0, "{hits} of {KILLS} kills hit, {survived} calls had answered");
    let rows = place.approved();
    let recorded: BTreeSet<String> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), recorded.len(), "a call has two rows");
    let lost: Vec<&String> = answered.difference(&recorded).collect();
    assert!(lost.is_empty(), "answered and not recorded: {lost:?}");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    assert!(place.session().is_dir());
}

/// A client that kills a slow hook may run the tool: the hook ends before that, and denies.
#[test]
fn a_hook_that_gets_no_end_of_its_input_denies_in_time() {
    let place = Workplace::new("endless");
    place.start();
    let start = Instant::now();
    let mut child = place.command(&["hook"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(place.write_call("one", "src/module.rs").as_bytes()).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(2));
    assert!((Duration::from_secs(15)..Duration::from_secs(30)).contains(&start.elapsed()), "{:?}", start.elapsed());
    drop(input);
    place.allowed("two");
}

/// A short payload can take long too: a script that it starts, a folder on a slow disk. Here the hook itself stands still.
#[test]
fn a_hook_that_goes_on_after_its_time_denies_what_it_would_have_allowed() {
    let place = Workplace::new("late");
    place.start();
    let mut child = place.command(&["hook"]).spawn().unwrap();
    let id = child.id().to_string();
    let signal = |name: &str| {
        let status = Command::new("kill").args(["-s", name, id.as_str()]).status().unwrap();
        assert!(status.success());
    };
    // The clock runs from the hook's start, so it has to have begun.
    thread::sleep(Duration::from_secs(1));
    signal("STOP");
    thread::sleep(Duration::from_secs(25));
    child.stdin.take().unwrap().write_all(place.write_call("one", "src/module.rs").as_bytes()).unwrap();
    signal("CONT");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    place.allowed("two");
}
