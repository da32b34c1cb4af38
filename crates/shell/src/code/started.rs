//! What scripts in Perl, Ruby, PHP, Lua and R start: commands in plain texts, and calls whose command is made while they run.
//!
//! Refuses to be a reader of these languages: it looks for the calls that start something, and a script that hides one (a name put together,
//! a quote in a pattern) is not found out. Invariant: a call that it sees is a command that is known, or the script is said to compute one.
//! Page: `spec/shell.md`, "Written, then run".

use crate::code::{Language, Reading, known};

/// Longest script that is looked through, in bytes; of a longer one it is not known what it starts.
const MAX_TEXT: usize = 512 << 10;

/// Longest text in quotes, and longest call of `open`, in bytes: what is longer is none.
const MAX_QUOTED: usize = 4096;

/// What starts something, with what has to stand before it, and whether it is given a program and its words instead of a line.
struct Call {
    name: &'static str,
    words: bool,
}

const fn line(name: &'static str) -> Call {
    Call { name, words: false }
}

const fn words(name: &'static str) -> Call {
    Call { name, words: true }
}

const PERL: &[Call] = &[line("system"), line("exec"), line("readpipe"), line("open2"), line("open3"), line("syscall")];
const RUBY: &[Call] = &[
    line("system"),
    line("exec"),
    line("spawn"),
    line("popen"),
    line("popen3"),
    line("popen2"),
    line("popen2e"),
    line("capture3"),
    line("capture2"),
    line("capture2e"),
    line("pipeline"),
    line("syscall"),
];
const PHP: &[Call] = &[
    line("system"),
    line("exec"),
    line("shell_exec"),
    line("passthru"),
    line("popen"),
    line("proc_open"),
    words("pcntl_exec"),
];
const LUA: &[Call] = &[line("execute"), line("popen")];
const R: &[Call] = &[line("system"), words("system2"), line("shell"), line("pipe")];

/// What runs a text as code of the language itself.
const EVALS: [&str; 3] = ["eval", "instance_eval", "loadstring"];

/// Modules whose members those are.
const MODULES: [&str; 15] = [
    "Kernel.",
    "Kernel::",
    "Process.",
    "Process::",
    "IO.",
    "IO::",
    "PTY.",
    "PTY::",
    "Open3.",
    "Open3::",
    "os.",
    "io.",
    "base::",
    "CORE::",
    "CORE::GLOBAL::",
];

/// Adds what a script that is not followed starts.
pub(crate) fn add(language: Language, text: &str, out: &mut Reading) {
    let calls = match language {
        Language::Perl => PERL,
        Language::Ruby => RUBY,
        Language::Php => PHP,
        Language::Lua => LUA,
        Language::R => R,
        Language::Python | Language::JavaScript => return,
    };
    if text.len() > MAX_TEXT {
        out.computes = true;
        return;
    }
    let comment = match language {
        Language::Lua => "--",
        Language::Php => "//",
        _ => "#",
    };
    // Elsewhere such a sign may stand in a pattern, and what follows it runs.
    let anywhere = matches!(language, Language::Lua | Language::Php);
    let mut at = 0;
    let mut begins = true;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        if (begins || anywhere) && rest.starts_with(comment) || begins && rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        begins = c == '\n' || begins && c.is_whitespace();
        match c {
            '`' if matches!(language, Language::Perl | Language::Ruby | Language::Php) => {
                at += out.code_between('`', rest.get(1..).unwrap_or_default()) + 1;
            }
            '"' | '\'' => {
                at += quoted(rest).map_or(1, |end| inside(calls, rest.get(..end).unwrap_or_default(), out) + 1)
            }
            c if is_letter(c) => {
                let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                out.name(language, calls, (text.get(..at).unwrap_or_default(), name, after));
                at += end;
            }
            '%' if language == Language::Ruby && rest.get(1..2) == Some("x") => {
                out.computes |=
                    rest.chars().nth(2).is_some_and(|open| !open.is_alphanumeric() && !open.is_whitespace());
                at += 2;
            }
            c => at += c.len_utf8(),
        }
    }
}

const fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where a text in quotes ends, on its line.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut letters = text.char_indices().skip(1);
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            _ if at > MAX_QUOTED => return None,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// A text may be two patterns with a call between them: a call with its bracket counts there too. Returns its length.
fn inside(calls: &[Call], text: &str, out: &mut Reading) -> usize {
    let called = |call: &Call| {
        text.match_indices(call.name).any(|(at, _)| {
            let before = text.get(..at).and_then(|front| front.trim_end().chars().next_back());
            let after = text.get(at + call.name.len()..).unwrap_or_default().trim_start();
            matches!(before, Some(';' | '{' | '}' | '(' | '=')) && after.starts_with('(')
        })
    };
    out.computes |= calls.iter().any(called);
    text.len()
}

impl Reading {
    /// What stands between two backquotes; returns how much that is.
    fn code_between(&mut self, close: char, text: &str) -> usize {
        let Some(end) = text.find(close) else { return 0 };
        let code = text.get(..end).unwrap_or_default();
        self.starts(code);
        end + 1
    }

    /// A line that is run: as it stands, where nothing in it is put in later.
    fn starts(&mut self, code: &str) {
        if code.contains(['$', '@', '\\']) || code.contains("#{") {
            self.computes = true;
        } else if !code.trim().is_empty() {
            self.shells.push(known(code));
        }
    }

    fn name(&mut self, language: Language, calls: &[Call], (before, name, after): (&str, &str, &str)) {
        let perl = language == Language::Perl;
        if perl && matches!(name, "qx" | "open" | "eval") {
            return self.perl(name, after);
        }
        let call = calls.iter().find(|call| call.name == name);
        if call.is_none() && !EVALS.contains(&name) {
            return;
        }
        let member = before.ends_with(['.', ':', '>', '$', '@', '%', '&']);
        // Lua's own are members, and a name alone is the script's.
        if language == Language::Lua && call.is_some() && !member {
            return;
        }
        let defined = ["def", "sub", "function"].iter().any(|word| before.trim_end().ends_with(word));
        if defined || member && !MODULES.iter().any(|module| before.ends_with(module)) {
            return;
        }
        let bare = matches!(language, Language::Perl | Language::Ruby | Language::Lua);
        let given = after.trim_start_matches([' ', '\t']);
        let (bracket, given) = match given.strip_prefix('(') {
            Some(given) => (true, given.trim_start()),
            None => (false, given),
        };
        let spaced = after.starts_with([' ', '\t']);
        let value = given.starts_with(['"', '\'']) || bracket;
        let unbound = |c: char| is_letter(c) || matches!(c, '$' | '@' | '{' | '[');
        let is_call = value || bare && spaced && given.starts_with(unbound);
        if !is_call {
            return;
        }
        // Words of a sentence, and what a method is called with by its name.
        let word = given.find(|c| !is_letter(c)).map_or("", |end| given.get(..end).unwrap_or_default());
        if !value && (matches!(word, "if" | "unless" | "or" | "and" | "do" | "x") || language == Language::Lua) {
            return;
        }
        match call {
            Some(call) => self.given(language, call, given),
            // A block is code that stands here.
            None => self.computes |= !given.starts_with('{'),
        }
    }

    /// What a call is given: a line, or a program with its words.
    fn given(&mut self, language: Language, call: &Call, given: &str) {
        let (mut texts, mut listed) = (Vec::new(), false);
        let mut rest = given.trim_start_matches('[');
        let ended = loop {
            let Some(end) = quoted(rest).filter(|_| rest.starts_with(['"', '\''])) else { break false };
            let text = rest.get(1..end).unwrap_or_default();
            if rest.starts_with('"') && (text.contains(['$', '@', '\\']) || text.contains("#{")) || text.contains('\\')
            {
                break false;
            }
            texts.push(text);
            rest = rest.get(end + 1..).unwrap_or_default().trim_start_matches([' ', '\t']);
            match rest.strip_prefix(',') {
                Some(more) => (rest, listed) = (more.trim_start(), true),
                None => {
                    let words = ["or ", "and ", "if ", "unless ", "||", "&&"];
                    break rest.is_empty()
                        || rest.starts_with([')', ']', ';', '\n', '\r', '}'])
                        || words.iter().any(|word| rest.starts_with(word));
                }
            }
        };
        // What follows the line is no word of it: `popen('cmd', 'r')`, `exec('cmd', $out)`.
        let alone = !call.words && matches!(language, Language::Php | Language::Lua | Language::R);
        match texts.as_slice() {
            [code, ..] if alone && (ended || listed) => self.starts(code),
            [code] if ended && !call.words => self.starts(code),
            [first, ..] if ended => {
                // `IO.popen("cmd", "r")`: a program whose name has a blank is more likely a line.
                if first.contains(' ') {
                    self.starts(first);
                }
                self.commands.push(texts.into_iter().map(known).collect());
            }
            _ => self.computes = true,
        }
    }

    /// `qx{…}`, `open(F, "cmd |")`, `eval "…"`.
    fn perl(&mut self, name: &str, after: &str) {
        let given = after.trim_start_matches([' ', '\t']);
        match name {
            "qx" => {
                // `qx x…x`
                self.computes |= after.starts_with(' ') && given.starts_with(is_letter);
                let open = given.chars().next().filter(|open| !is_letter(*open) && !matches!(open, '=' | ',' | ';'));
                let close = open.map(|open| match open {
                    '(' => ')',
                    '{' => '}',
                    '[' => ']',
                    '<' => '>',
                    other => other,
                });
                if let (Some(open), Some(close)) = (open, close) {
                    self.code_between(close, given.get(open.len_utf8()..).unwrap_or_default());
                }
            }
            "eval" => self.computes |= given.starts_with(['"', '\'', '$', '(']),
            _ => {
                let call = given.get(..given.floor_char_boundary(MAX_QUOTED)).unwrap_or_default();
                let call = call.split(';').next().unwrap_or_default();
                let piped =
                    |text: &str| text.trim().starts_with('|') || text.trim_end().ends_with('|') || text.trim() == "-|";
                self.computes |= call.split(['"', '\'']).skip(1).step_by(2).any(piped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::text_of;

    fn of(language: Language, text: &str) -> (Vec<String>, bool) {
        let mut out = Reading::default();
        add(language, text, &mut out);
        let lines = out.shells.iter().map(|code| text_of(code).unwrap());
        let words =
            |words: &Vec<_>| words.iter().map(|word: &Vec<_>| text_of(word).unwrap()).collect::<Vec<_>>().join(" ");
        (lines.chain(out.commands.iter().map(words)).collect(), out.computes)
    }

    #[test]
    fn what_scripts_start_is_seen() {
        for (language, text) in [
            (Language::Perl, "system(\"curl x\");"),
            (Language::Perl, "system 'curl', 'x' or die;"),
            (Language::Perl, "my $a = 1; exec 'curl x' if $a;"),
            (Language::Perl, "print `curl x`;"),
            (Language::Perl, "my $o = qx{curl x};"),
            (Language::Perl, "CORE::system('curl x')"),
            (Language::Ruby, "system \"curl x\""),
            (Language::Ruby, "IO.popen(['curl', 'x'])"),
            (Language::Ruby, "out, status = Open3.capture2(\"curl\", \"x\")"),
            (Language::Php, "<?php echo shell_exec('curl x'); ?>"),
            (Language::Php, "<?php \\system('curl x');"),
            (Language::Lua, "os.execute(\"curl x\")"),
            (Language::Lua, "local f = io.popen 'curl x'"),
            (Language::R, "system2(\"curl\", \"x\")"),
            (Language::R, "base::system('curl x', intern = TRUE)"),
            (Language::Php, "<?php exec('curl x', $out, $code);"),
            (Language::Php, "<?php $f = popen('curl x', 'r');"),
            (Language::Lua, "local f = io.popen('curl x', 'r')"),
            (Language::Ruby, "Process::spawn('curl x')"),
        ] {
            assert_eq!(of(language, text), (vec!["curl x".to_owned()], false), "{text}");
        }
    }

    #[test]
    fn what_is_made_while_it_runs_is_said() {
        for (language, text) in [
            (Language::Perl, "system($cmd);"),
            (Language::Perl, "system \"curl $host\";"),
            (Language::Perl, "exec @list;"),
            (Language::Perl, "open(my $f, '-|', 'curl', 'x');"),
            (Language::Perl, "open F, \"curl x |\";"),
            (Language::Perl, "eval \"sys\" . \"tem('x')\";"),
            (Language::Perl, "'a' =~ m/'/; system('curl'); m/'/;"),
            (Language::Ruby, "system(*words)"),
            (Language::Ruby, "%x(curl x)"),
            (Language::Ruby, "spawn cmd"),
            (Language::Ruby, "eval \"puts 1\""),
            (Language::Php, "<?php eval('echo 1;');"),
            (Language::Lua, "loadstring('x()')()"),
            (Language::Perl, "my $o = qx xcurlx;"),
            (Language::Ruby, "system \"git show #{ref}\""),
            (Language::Php, "<?php system($_GET['x']);"),
            (Language::Php, "<?php exec('curl ' . $x, $out);"),
            (Language::Lua, "os.execute(cmd)"),
            (Language::R, "system(paste(\"curl\", x))"),
        ] {
            assert!(of(language, text).1, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_nothing() {
        for (language, text) in [
            (Language::Perl, "# system('x')\nprint \"the system is up\\n\";"),
            (Language::Perl, "my %h = (system => 1, exec => 2); $db->exec('x'); eval { f() };"),
            (Language::Perl, "open(my $f, '<', 'a.txt') or die; print \"`x`\";"),
            (Language::Ruby, "def system(x) = x\nputs 'system', h[:exec], db.exec(\"SELECT 1\")"),
            (Language::Ruby, "puts 100 %x\nconfig = { exec: 'x' }; obj.instance_eval { @a }; instance_eval { b }"),
            (Language::Php, "<?php $db->exec(\"UPDATE `t` SET `a` = 1\"); // system('x')"),
            (Language::Php, "<?php function exec($x) {} echo 'system';"),
            (Language::Lua, "print('os.execute') -- os.execute('x')"),
            (Language::R, "x <- Sys.info()[['sysname']]; y <- pipeline(1)"),
        ] {
            assert_eq!(of(language, text), (vec![], false), "{text}");
        }
    }
}
