//! A database as the client writes it, drawn off while it changes.

use super::*;
use crate::transcript::{Told, Transcripts, tell};
use crate::usage::Spoken;

const TABLES: &str = "create table session (id text, parent_id text, agent text, directory text, time_created integer);
    create table message (id text, session_id text, time_created integer, time_updated integer, data text);
    create table part (id text, message_id text, session_id text, time_created integer, time_updated integer, data text);
    insert into session values ('ses_1', null, 'build', '/w', 1), ('ses_2', 'ses_1', 'general', '/w', 2);
    insert into message values ('msg_1', 'ses_1', 1, 1, '{\"role\":\"user\"}'),
        ('msg_2', 'ses_1', 2, 2, '{\"role\":\"assistant\",\"modelID\":\"m\"}'), ('msg_3', 'ses_2', 3, 3, '{\"role\":\"user\"}');
    insert into part values ('prt_1', 'msg_2', 'ses_1', 2, 2,
        '{\"type\":\"tool\",\"tool\":\"bash\",\"callID\":\"c1\",\"state\":{\"status\":\"running\",\"input\":{\"command\":\"ls\"}}}'),
        ('prt_2', 'msg_2', 'ses_1', 3, 3, '{\"type\":\"step-finish\",\"tokens\":{\"input\":7,\"output\":2,\"reasoning\":1}}'),
        ('prt_3', 'msg_3', 'ses_2', 4, 4, 'no JSON');";

#[test]
fn a_file_grows_by_what_is_new_or_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let client = Connection::open(&path).unwrap();
    client.execute_batch(TABLES).unwrap();
    let main = main(&folder.path().join("conversations"), "ses_1");
    draw(&main).unwrap();
    assert!(!main.exists(), "nothing is drawn before it has begun");
    begin(&main, &path).unwrap();
    draw(&main).unwrap();
    let once = fs::read_to_string(&main).unwrap();
    assert_eq!(once.lines().count(), 5, "{once}");
    draw(&main).unwrap();
    assert_eq!(fs::read_to_string(&main).unwrap(), once, "nothing is told twice");

    let told = |main: &Path| {
        let mut calls = Vec::new();
        let whole = tell(&super::super::OpenCode, main, &mut |told| match told {
            Told::Call(call) => calls.push(format!("{} {:?}", call.call_id, call.agent)),
            Told::Result { call_id, outcome } => calls.push(format!("{call_id} {:?}", outcome("bash"))),
            Told::Unreadable => calls.push("unreadable".to_owned()),
        });
        (calls, whole.unwrap())
    };
    assert_eq!(told(&main), (vec!["c1 None".to_owned(), "unreadable".to_owned()], false));
    let mut used = Vec::new();
    super::super::OpenCode.usage(&main, 0, &mut |spoken| used.push(spoken)).unwrap();
    let [Spoken::Message { rate, tokens, .. }] = used.as_slice() else { panic!("{used:?}") };
    assert_eq!((rate.model.as_str(), tokens.input, tokens.output), ("m", 7, 3));

    // A line that was cut off is written anew; a row that was changed is told again, and is no new prompt.
    fs::write(&main, once.get(..once.len() - 9).unwrap()).unwrap();
    client
        .execute_batch(
            "update part set time_updated = 9, data = replace(data, '\"running\"', '\"completed\"') where id = 'prt_1';
             update message set time_updated = 9 where id = 'msg_1'; delete from part where id = 'prt_3'",
        )
        .unwrap();
    draw(&main).unwrap();
    let (whole, _) = once.trim_end().rsplit_once('\n').unwrap();
    assert!(fs::read_to_string(&main).unwrap().starts_with(whole));
    assert_eq!(told(&main).0, ["c1 None", "c1 None", "c1 Completed", "unreadable"]);
    let mut prompts = 0;
    super::super::OpenCode.lines(&main, 0, &mut |line| prompts += u32::from(line.prompt.is_some())).unwrap();
    assert_eq!(prompts, 1);
}

#[test]
fn what_is_no_table_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let main = main(folder.path(), "ses_1");
    begin(&main, &path).unwrap();
    draw(&main).unwrap();
    fs::write(&path, "no database at all, and long enough to be looked at").unwrap();
    assert!(draw(&main).is_err());
    fs::remove_file(&path).unwrap();
    let client = Connection::open(&path).unwrap();
    client
        .execute_batch(&TABLES.replace("create table part", "create table piece").replace("into part", "into piece"))
        .unwrap();
    client.execute_batch("create view part as select * from piece").unwrap();
    assert!(draw(&main).is_err());
    assert_eq!(super::main(folder.path(), "../x").parent(), Some(folder.path()));
}
