//! A command without its spelling choices, so that a rule about `rm -rf` also sees `rm --force -r`.

use crate::action::Normal;
use crate::programs::operands::{git, value_flags};
use crate::word::Word;

/// Options that mean the same: program, spelling, the one spelling kept.
const SAME: &[(&str, &str, &str)] = &[
    ("rm", "-R", "-r"),
    ("rm", "--recursive", "-r"),
    ("rm", "--force", "-f"),
    ("cp", "-R", "-r"),
    ("cp", "--recursive", "-r"),
    ("cp", "--force", "-f"),
    ("mv", "--force", "-f"),
    ("ln", "--symbolic", "-s"),
    ("ln", "--force", "-f"),
    ("chmod", "--recursive", "-R"),
    ("chown", "--recursive", "-R"),
    ("git", "--force", "-f"),
    ("git", "--delete", "-d"),
    ("git", "-D", "-d"),
    ("git", "--all", "-a"),
    ("git", "--no-verify", "-n"),
    ("grep", "--recursive", "-r"),
    ("sed", "--in-place", "-i"),
    ("curl", "--upload-file", "-T"),
    ("curl", "--data", "-d"),
    ("curl", "--output", "-o"),
    ("curl", "--request", "-X"),
    ("docker", "--force", "-f"),
    ("npm", "--global", "-g"),
    ("pip", "--yes", "-y"),
    ("apt", "--yes", "-y"),
    ("apt-get", "--yes", "-y"),
    ("kill", "-KILL", "-9"),
    ("kill", "-SIGKILL", "-9"),
    ("rsync", "--archive", "-a"),
];

/// Programs whose single-dash options are whole words.
const WHOLE: [&str; 12] =
    ["find", "java", "go", "terraform", "tofu", "openssl", "ffmpeg", "gcc", "clang", "kill", "convert", "Xvfb"];

/// Takes the spelling choices out of a command.
pub fn normal(words: &[Word]) -> Normal {
    let Some((first, rest)) = words.split_first() else { return Normal::default() };
    let name = first.literal().unwrap_or_default();
    let program = name.rsplit('/').next().unwrap_or_default().to_owned();
    let globals = match program.as_str() {
        "git" => git::GLOBALS,
        "docker" | "podman" => "-H --host --context --config -l --log-level",
        "kubectl" => "-n --namespace --context --kubeconfig --cluster --user",
        "npm" | "pnpm" | "yarn" => {
            "-C --prefix --cwd --dir --access --registry --tag --otp --loglevel --userconfig -w --workspace -F --filter"
        }
        "make" => "-C --directory -f --file",
        "cargo" => "--config -Z -C --color",
        _ => "",
    };
    let skip = if globals.is_empty() { 0 } else { value_flags(rest, globals) };
    let mut out = Normal { program, flags: Vec::new(), operands: Vec::new() };
    let mut plain = false;
    // `cargo +nightly publish`, `docker image push`
    let skip = skip
        + usize::from(rest.get(skip).and_then(Word::literal).is_some_and(|text| match out.program.as_str() {
            "cargo" | "rustc" | "rustdoc" | "rustfmt" => text.starts_with('+'),
            "docker" | "podman" => matches!(text.as_str(), "image" | "container"),
            _ => false,
        }));
    for word in rest.get(skip..).unwrap_or_default() {
        let text = word.literal().unwrap_or_default();
        if text == "--" && !plain {
            plain = true;
        } else if plain || !text.starts_with('-') || text.len() < 2 {
            out.operands.push(word.clone());
        } else {
            flags(&text, &mut out);
        }
    }
    out.flags.sort();
    out.flags.dedup();
    out
}

fn flags(text: &str, out: &mut Normal) {
    let name = text.split('=').next().unwrap_or(text);
    if name.starts_with("--") || WHOLE.contains(&out.program.as_str()) {
        let kept = one(&out.program, name);
        return out.flags.push(kept);
    }
    for letter in name.chars().skip(1) {
        let kept = one(&out.program, &format!("-{letter}"));
        out.flags.push(kept);
    }
}

fn one(program: &str, flag: &str) -> String {
    let same = SAME.iter().find(|(own, spelling, _)| *own == program && *spelling == flag);
    // `--rec` for `--recursive`, where it can mean nothing else.
    let short = || {
        let mut long = SAME.iter().filter(|(own, spelling, _)| *own == program && spelling.starts_with(flag));
        long.next().filter(|_| flag.len() > 2 && flag.starts_with("--") && long.next().is_none())
    };
    same.or_else(short).map_or(flag, |(_, _, kept)| kept).to_owned()
}
