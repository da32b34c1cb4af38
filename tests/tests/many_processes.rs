//! Many processes, one session: what was answered is recorded, once, in one intact chain.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeSet;
use std::thread;

use workplace::{SESSION, Workplace};

const PROCESSES: usize = 64;
const CALLS: usize = 200;

#[test]
fn each_of_12800_answered_calls_has_one_row() {
    let place = Workplace::new("many-processes");
    place.start();
    thread::scope(|scope| {
        for process in 0..PROCESSES {
            let place = &place;
            scope.spawn(move || (0..CALLS).for_each(|call| place.allowed(&format!("{process}-{call}"))));
        }
    });
    let rows = place.approved();
    let ids: BTreeSet<&String> = rows.iter().collect();
    assert_eq!((rows.len(), ids.len()), (PROCESSES * CALLS, PROCESSES * CALLS));
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    assert!(place.session().is_dir());
}

#[test]
fn a_call_that_is_denied_leaves_no_approving_row() {
    let place = Workplace::new("many-processes-denied");
    place.allowed("first");
    let text = place.answer(&place.write_call("second", ".env"));
    assert!(text.contains(r#""permissionDecision":"deny""#), "{text}");
    assert_eq!(place.approved(), ["first"]);
}

#[test]
fn a_limit_of_calls_lets_exactly_so_many_run_whoever_asks_first() {
    const LIMIT: usize = 20;
    let place = Workplace::new("many-processes-limit");
    let policy = format!(r#"{{"version":"1.0","name":"limited","limits":{{"maxToolCalls":{{"value":{LIMIT}}}}}}}"#);
    std::fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    place.start();
    thread::scope(|scope| {
        for process in 0..16 {
            let place = &place;
            scope.spawn(move || {
                for call in 0..4 {
                    let text = place.answer(&place.write_call(&format!("{process}-{call}"), "src/module.rs"));
                    assert!(!text.contains("deny") || text.contains("/limits/maxToolCalls"), "{text}");
                }
            });
        }
    });
    assert_eq!(place.approved().len(), LIMIT);
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = place.writ(&["verify", SESSION]);
    let report = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(report.contains("64 decisions come out the same (20 allowed, 0 asked, 44 denied)"), "{report}");
}
