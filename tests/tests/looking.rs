//! A session is looked at: as a page in a real browser, in a terminal, line by line while it goes on.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use workplace::{SESSION, Workplace};
use writ_evidence::row::{Draft, Row};

/// A name that would be markup, a terminal's command and an order of letters, if anybody let it.
const HOSTILE: &str = "<img src=x onerror=document.title=1>\u{1b}[2J\u{202e}.rs";
const POLICY: &str = r#"{"version":"1.0","name":"look","tools":{"requireApproval":["Bash:git push"]},"files":{"allow":["src/**"],"deny":["**/.env"]},"limits":{"maxToolCalls":100}}"#;

/// A session with a prompt, calls that came to everything there is, and a claim.
fn session(name: &str) -> Workplace {
    let place = Workplace::new(name);
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"do it""#));
    let hostile =
        serde_json::to_string(&format!("{}/src/{HOSTILE}", place.folder.join("repository").display())).unwrap();
    call(&place, "1", "Write", &format!(r#"{{"file_path":{hostile},"content":"x"}}"#));
    done(&place, "1", "Write");
    call(&place, "2", "Read", r#"{"file_path":".env"}"#);
    call(&place, "3", "Bash", r#"{"command":"git push origin main"}"#);
    call(&place, "4", "Bash", r#"{"command":"ls src"}"#);
    done(&place, "4", "Bash");
    call(&place, "5", "WebFetch", r#"{"url":"https://docs.example/x","prompt":"p"}"#);
    place
}

fn call(place: &Workplace, id: &str, tool: &str, input: &str) {
    place.answer(
        &place.payload("PreToolUse", &format!(r#","tool_name":"{tool}","tool_input":{input},"tool_use_id":"{id}""#)),
    );
}

fn done(place: &Workplace, id: &str, tool: &str) {
    let members = format!(r#","tool_name":"{tool}","tool_input":{{}},"tool_use_id":"{id}","tool_response":"ok""#);
    place.answer(&place.payload("PostToolUse", &members));
}

fn end(place: &Workplace) {
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
}

fn chromium(place: &Workplace, words: &[&str]) -> String {
    let profile = place.folder.join("chromium");
    let mut command = Command::new("chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.arg(format!("--user-data-dir={}", profile.display())).args(words).env("HOME", &profile);
    let output = command.stdin(Stdio::null()).output().expect("chromium starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_report_is_one_page_that_a_browser_shows_and_nothing_in_it_acts() {
    let place = session("report");
    end(&place);
    let page = place.folder.join("report.html");
    let words = ["report", "-o", page.to_str().unwrap()];
    let output = place.writ(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.writ(&words).status.code(), Some(1), "a file that is there is replaced");
    let text = fs::read_to_string(&page).unwrap();
    for part in [
        "<svg class=\"chart\"",
        "default-src 'none'",
        "prefers-color-scheme: dark",
        "@media print",
        "Verification",
        "/files/deny/0",
        "docs.example",
    ] {
        assert!(text.contains(part), "no {part}");
    }
    for part in ["<script", "<img", "http://", "src=\"", "url(", "\u{1b}", "\u{202e}"] {
        assert!(!text.contains(part), "{part} is in it");
    }
    let url = format!("file://{}", page.display());
    let shown = chromium(&place, &["--dump-dom", &url]);
    assert!(shown.contains(&format!("<title>Session {SESSION}</title>")), "{shown}");
    assert!(shown.contains("&lt;img src=x onerror"), "the hostile name is not shown");
    // Dark and light, as a picture: each is there, and they differ.
    let picture = |name: &str, more: &[&str]| {
        let file = place.folder.join(name);
        let shot = format!("--screenshot={}", file.display());
        chromium(&place, &[&[&*shot, "--window-size=1200,1600", "--hide-scrollbars"], more, &[&*url]].concat());
        fs::read(file).unwrap()
    };
    let (light, dark) = (picture("light.png", &[]), picture("dark.png", &["--blink-settings=preferredColorScheme=0"]));
    assert!(light.starts_with(b"\x89PNG") && light.len() > 20_000 && light != dark, "{} {}", light.len(), dark.len());
    let pdf = place.folder.join("report.pdf");
    chromium(&place, &[&format!("--print-to-pdf={}", pdf.display()), &url]);
    assert!(fs::read(pdf).unwrap().starts_with(b"%PDF"));
    let found: Value = serde_json::from_slice(&place.writ(&["report", "--format", "json"]).stdout).unwrap();
    assert_eq!(found["counts"]["denied"], 1, "{found:#}");
    assert_eq!((found["counts"]["asked"].as_u64(), found["ended"].as_bool()), (Some(1), Some(true)));
    let reasons = found["entries"].to_string();
    assert!(reasons.contains("\"instead\"") && reasons.contains("git push"), "{reasons}");
}

/// The rows of a session, again and again, until there are so many.
fn lengthen(place: &Workplace, rows: usize) {
    let path = place.session().join("ledger.jsonl");
    let (real, wrong) = Row::parse_all(&fs::read(&path).unwrap());
    assert!(wrong.is_none());
    let (body, last) = (&real[1..real.len() - 1], real.last().unwrap());
    let mut text = Vec::new();
    let mut before: Option<Row> = None;
    let first = real[0].timestamp.millis();
    for at in 0..rows {
        let row = match at {
            0 => &real[0],
            at if at + 1 == rows => last,
            at => &body[(at - 1) % body.len()],
        };
        let draft = Draft {
            timestamp: writ_core::Timestamp::from_millis(first + at as i64 * 700),
            call_id: row.call_id.as_ref().map(|id| format!("{id}-{}", (at - 1) / body.len())),
            tool_name: row.tool_name.clone(),
            decision: row.decision,
            denial_reason: row.denial_reason.clone(),
            result_hash: row.result_hash,
            detail: row.detail.clone(),
        };
        let (sealed, line) = Row::seal_line(before.as_ref(), draft).unwrap();
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
        before = Some(sealed);
    }
    fs::write(path, text).unwrap();
}

#[test]
fn the_page_of_a_long_session_is_small_and_opens_whole() {
    let place = session("report-long");
    end(&place);
    lengthen(&place, 5_000);
    let page = place.folder.join("long.html");
    let began = Instant::now();
    let output = place.writ(&["report", "--unverified", "-o", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = began.elapsed();
    let size = fs::metadata(&page).unwrap().len();
    assert!(size <= 3_000_000, "{size} bytes");
    let empty = place.folder.join("empty.html");
    fs::write(&empty, "<!doctype html><title>x</title>").unwrap();
    let opened = |file: &Path| {
        let began = Instant::now();
        let dom = chromium(&place, &["--dump-dom", &format!("file://{}", file.display())]);
        (began.elapsed(), dom.matches("<tr").count())
    };
    // What the browser itself takes to start is not the page's, and other tests run beside this one: the best of three.
    let best = |file: &Path| (0..3).map(|_| opened(file)).min().unwrap();
    let (without, _) = best(&empty);
    let (with, rows) = best(&page);
    assert!(rows > 3_000, "{rows} rows");
    let alone = with.saturating_sub(without);
    eprintln!("{size} bytes, made in {made:?}, opened in {alone:?} beyond an empty page's {without:?}");
}

/// `writ` in a terminal of 400 by 40 (wider than any folder's name), where these keys are pressed one by one, each once what the last drew stands: what a
/// person sees before each key, whether it ended well, and everything it sent to the terminal.
fn in_a_terminal(place: &Workplace, words: &str, keys: &[&str]) -> (Vec<String>, bool, String) {
    let writ = place.command(&[]);
    let line = format!("stty cols 400 rows 40; {} {words}", writ.get_program().display());
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).current_dir(place.folder.join("repository")).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TERM", "xterm-256color");
    command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("script(1)");
    let (mut typed, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sent, drawn) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut part) {
            sent.send(part[..length].to_vec()).ok();
        }
    });
    let (mut all, mut terminal, mut seen) = (Vec::new(), vt100::Parser::new(40, 400, 0), Vec::new());
    for key in keys {
        // Something is drawn, however long it takes, and then nothing more.
        let first = drawn.recv_timeout(Duration::from_secs(20));
        let mut part = first.unwrap_or_else(|_| panic!("nothing drawn before {key:?}"));
        while let Ok(more) = drawn.recv_timeout(Duration::from_millis(500)) {
            part.extend(more);
        }
        terminal.process(&part);
        all.extend(part);
        seen.push(terminal.screen().contents());
        drop(typed.write_all(key.as_bytes()));
    }
    let done = child.wait().unwrap().success();
    drop(typed);
    all.extend(drawn.iter().flatten());
    (seen, done, String::from_utf8_lossy(&all).into_owned())
}

#[test]
fn a_session_opens_in_a_terminal() {
    let place = session("open");
    end(&place);
    let (seen, done, drawn) = in_a_terminal(&place, "session open", &["g", "n", "\t", "1", "/git\r", "q"]);
    assert!(done, "{drawn}");
    let [first, _, stopped, files, _, found] = seen.as_slice() else { panic!("{seen:#?}") };
    for (screen, parts) in [
        (first, &["session workplace", "timeline", "denied", "asked", "<img src=x onerror", "\\u{1b}[2J\\u{202e}"][..]),
        (stopped, &["to allow it", "/files/deny/0"]),
        (files, &["stopped  path"]),
        (found, &["filter:", "/git"]),
    ] {
        for part in parts {
            assert!(screen.contains(part), "no {part} in\n{screen}\n of {seen:#?}");
        }
    }
    // It begins and ends on the other screen, and draws nothing that a name says.
    assert!(drawn.contains("\u{1b}[?1049h") && drawn.contains("\u{1b}[?1049l") && !drawn.contains('\u{202e}'));
    let piped = place.writ(&["session", "open"]);
    assert_eq!(piped.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("needs a terminal"));
}

#[test]
fn a_running_session_is_followed_to_its_end() {
    let place = session("watch");
    let mut watch = place.command(&["watch", "--format", "json"]).spawn().unwrap();
    let (sent, told) = mpsc::channel::<String>();
    let reader = BufReader::new(watch.stdout.take().unwrap());
    thread::spawn(move || reader.lines().map_while(Result::ok).all(|line| sent.send(line).is_ok()));
    // What has happened so far is not told, and it may begin a little later than it is started: until it tells one.
    let first = (0..60).find_map(|round| {
        call(&place, &format!("late-{round}"), "Read", r#"{"file_path":"src/.env"}"#);
        told.recv_timeout(Duration::from_millis(500)).ok()
    });
    let first: Value = serde_json::from_str(&first.expect("a line")).unwrap();
    assert_eq!(
        (first["became"].as_str(), first["name"].as_str(), first["session"].as_str()),
        (Some("denied"), Some("Read"), Some(SESSION))
    );
    assert!(first["reasons"][0]["text"] == "**/.env", "{first}");
    end(&place);
    let rest: Vec<String> = told.iter().collect();
    assert!(rest.last().unwrap().contains("session-end"), "{rest:?}");
    assert!(watch.wait().unwrap().success());
    let all = place.writ(&["watch", "--all", "--stopped"]);
    let text = String::from_utf8_lossy(&all.stdout).into_owned();
    assert!(all.status.success() && text.matches("denied").count() >= 3 && !text.contains("prompt"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
}
