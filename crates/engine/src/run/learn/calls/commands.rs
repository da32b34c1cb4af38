//! Commands that calls ran, into patterns that people can read.
//!
//! Owns how wide a pattern is: a program's subcommand with any arguments where those say little, the very words where they decide what is
//! lost, run or reached. What files and hosts a command names is held by the lists of files and hosts. Invariant: every command that was run
//! is matched by a pattern, and the same commands give the same patterns.

use std::collections::{BTreeMap, BTreeSet};

/// Programs whose first words say what they do; beside those that the tables of programs give subcommands.
const WITH_SUBCOMMANDS: &str = "cargo npm pnpm yarn bun go docker podman git gh glab kubectl helm terraform tofu aws az gcloud pip pip3 uv \
    poetry pdm hatch brew apt apt-get dnf yum apk systemctl make just task npx pnpx bunx bundle rake mvn gradle gradlew dotnet mix rustup \
    conda mamba composer nix nx turbo lerna deno flutter dart swift stack cabal sbt lein poe tox nox pre-commit alembic flask \
    django-admin rails php artisan docker-compose";
/// Of these, the ones whose second word decides too.
const TWO_WORDS: &str = "run compose exec x dlx config remote stash submodule worktree pr issue repo workflow release api s3 ec2 container \
    image volume network get describe mod tool workspace plugin";
/// Programs that run what they are given, or reach, take away or hand over what no list of files tells: each command stays as it was.
const EXACT: &str = "rm rmdir unlink shred dd mkfs truncate chmod chown chgrp kill pkill killall sudo doas su ssh scp sftp rsync curl wget nc \
    ncat netcat telnet ftp sh bash zsh dash ksh fish eval source . exec env xargs parallel nohup nice timeout watch ssh-keygen ssh-add gpg \
    openssl crontab at systemctl service launchctl mount umount docker podman kubectl helm terraform tofu aws az gcloud gh glab psql mysql \
    sqlite3 mongosh redis-cli osascript open xdg-open iptables ip sysctl git-filter-repo awk gawk perl ruby php lua";
/// Subcommands that send the work elsewhere, or throw it away.
const EXACT_SUBCOMMANDS: &str = "push publish unpublish deploy upload login logout adduser token yank owner clean reset restore rebase \
    filter-branch gc prune rm remove uninstall destroy apply import delete exec x dlx run-script config credential send-email daemon";
/// Programs that run a script's file: its name is what matters.
const INTERPRETERS: &str =
    "python python2 python3 pypy node deno bun ruby perl php lua Rscript bash sh zsh tsx ts-node";
/// Most patterns of one program that are kept apart.
const MOST: usize = 48;

/// The patterns, each with the commands that it is made of.
pub fn patterns<'a>(commands: impl Iterator<Item = &'a str>) -> BTreeMap<String, BTreeSet<&'a str>> {
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for command in commands {
        found.entry(pattern(command)).or_default().insert(command);
    }
    let mut by_front: BTreeMap<String, usize> = BTreeMap::new();
    for pattern in found.keys().filter(|pattern| !pattern.ends_with(" *")) {
        *by_front.entry(front(pattern)).or_default() += 1;
    }
    // Too many to read: what they have in front, with anything behind.
    let mut out: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (pattern, commands) in found {
        let front = front(&pattern);
        let folds = !pattern.ends_with(" *") && by_front.get(&front).is_some_and(|count| *count > MOST);
        out.entry(if folds { format!("{front} *") } else { pattern }).or_default().extend(commands);
    }
    out
}

/// The program with the options behind it.
fn front(pattern: &str) -> String {
    let mut words = pattern.split(' ');
    let program = words.next().unwrap_or_default();
    let options: Vec<&str> = words.take_while(|word| word.starts_with('-')).collect();
    std::iter::once(program).chain(options).collect::<Vec<_>>().join(" ")
}

/// The pattern for one command.
fn pattern(command: &str) -> String {
    let exact = || command.replace('…', "*");
    let words: Vec<&str> = command.split(' ').collect();
    let (Some(first), second) = (words.first(), words.get(1).copied().unwrap_or_default()) else { return exact() };
    let program = first.rsplit('/').next().unwrap_or_default();
    // What is not known, or is a line of its own, is no program's name.
    if program.is_empty() || first.contains('…') || first.contains('*') {
        return exact();
    }
    if within(INTERPRETERS, program) {
        let script = !second.is_empty() && !second.starts_with('-') && !second.contains(['…', '*']);
        return if script { format!("{first} {second} *") } else { exact() };
    }
    if within(WITH_SUBCOMMANDS, program) || has_subcommands(program) {
        if !is_word(second) || within(EXACT_SUBCOMMANDS, second) {
            return exact();
        }
        let third = words.get(2).copied().unwrap_or_default();
        let two = within(TWO_WORDS, second);
        if two && (!is_word(third) || within(EXACT_SUBCOMMANDS, third)) {
            return exact();
        }
        // What acts on machines that are others' stays as it was, whatever its subcommand.
        return match (within(EXACT, program), two) {
            (true, _) => exact(),
            (false, true) => format!("{first} {second} {third} *"),
            (false, false) => format!("{first} {second} *"),
        };
    }
    if within(EXACT, program) || runs_others(program) { exact() } else { format!("{first} *") }
}

fn within(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// A subcommand, a target, a script's name: no option, no path and nothing unknown.
fn is_word(word: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '@' | '.');
    !word.is_empty() && !word.starts_with(['-', '.']) && word.chars().all(fine)
}

fn has_subcommands(program: &str) -> bool {
    writ_shell::program(program).is_some_and(|known| !known.subcommands().is_empty())
}

fn runs_others(program: &str) -> bool {
    writ_shell::program(program).is_some_and(|known| known.summary().contains("runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_left_open_where_they_say_little() {
        for (command, expected) in [
            ("ls -la src", "ls *"),
            ("ls", "ls *"),
            ("/usr/bin/grep -rn x src", "/usr/bin/grep *"),
            ("git status --short", "git status *"),
            ("git commit -m …", "git commit *"),
            ("git push origin main", "git push origin main"),
            ("git push", "git push"),
            ("git -C /w status", "git -C /w status"),
            ("git reset --hard HEAD~1", "git reset --hard HEAD~1"),
            ("git stash pop", "git stash pop *"),
            ("cargo test -p x", "cargo test *"),
            ("cargo publish", "cargo publish"),
            ("npm run build", "npm run build *"),
            ("npm run", "npm run"),
            ("make test", "make test *"),
            ("make", "make"),
            ("rm -rf build", "rm -rf build"),
            ("rm *.o", "rm *.o"),
            ("rm -rf …", "rm -rf *"),
            ("curl https://x.example", "curl https://x.example"),
            ("python3 tools/gen.py a b", "python3 tools/gen.py *"),
            ("python3 -m pytest", "python3 -m pytest"),
            ("sudo id", "sudo id"),
            ("kubectl get pods", "kubectl get pods"),
            ("./gradlew build", "./gradlew build *"),
            ("… x", "* x"),
        ] {
            assert_eq!(pattern(command), expected, "{command}");
        }
    }

    #[test]
    fn many_commands_of_one_program_are_folded() {
        let texts: Vec<String> = (0..60).map(|at| format!("rm -f out/{at}")).collect();
        let found = patterns(texts.iter().map(String::as_str).chain(["rm x", "ls a", "ls b"]));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["ls *", "rm -f *", "rm x"]);
    }
}
