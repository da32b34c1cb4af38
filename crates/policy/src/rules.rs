//! A policy's rules, compiled: patterns with the pointer of the rule they come from.
//!
//! "Deny reads wide, allow reads narrow" (R12) lives here: the same text becomes a wider pattern in `deny` and `readOnly` than
//! in `allow`. Page: `spec/policy.md`.

use writ_core::OWN_TOOLS;

use crate::glob::{Glob, GlobError, split};
use crate::scope::Scope;

/// How a list reads its patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// `deny`, `readOnly`, `requireApproval`: also below, also elsewhere.
    Wide,
    /// `allow`: exactly what it says.
    Narrow,
}

/// One path pattern of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// `!pattern`: takes back what earlier patterns said.
    pub negated: bool,
    /// The uses it is about.
    pub scope: Scope,
    pattern: Pattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Glob(Glob),
    /// `~/…`: hung off the home directory when it is known.
    Home(Glob),
}

/// Why no path has a pattern that is written as others write places: with what is never filled in here.
pub fn no_place(text: &str) -> Option<&'static str> {
    let text = text.strip_prefix('!').unwrap_or(text).trim_start();
    let named = |begin: char, end: char| {
        let rest = text.strip_prefix(begin)?;
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        (!name.is_empty() && rest.get(name.len()..)?.starts_with(end)).then_some(())
    };
    let mut letters = text.chars();
    let drive = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && letters.next().is_none_or(|c| matches!(c, '\\' | '/'));
    let call = text.ends_with(')')
        && text.split_once('(').is_some_and(|(tool, _)| {
            tool.starts_with(|c: char| c.is_ascii_uppercase()) && tool.chars().all(|c| c.is_ascii_alphanumeric())
        });
    let scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if text.starts_with('$') || named('%', '%').is_some() {
        Some("begins with a variable, which is not filled in: write the path, or `~/…`")
    } else if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
        Some("is no path: write `~/…` for the home directory, or the path of another's")
    } else if scheme || text.starts_with("file:") {
        Some("is an address: write the path")
    } else if drive {
        Some("is a path of another system")
    } else if call {
        Some("is written as a tool's call: write the path alone")
    } else {
        None
    }
}

impl PathRule {
    /// Compiles `text`. `root` is the folder that relative patterns hang off.
    pub fn parse(pointer: String, text: &str, root: &str, reading: Reading) -> Result<Self, GlobError> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let below = reading == Reading::Wide && !negated;
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        let wide =
            if below && !text.ends_with("**") { format!("{}/**", text.trim_end_matches('/')) } else { text.to_owned() };
        let pattern = if text == "~" || text.starts_with("~/") {
            let tail = wide.trim_start_matches('~');
            Pattern::Home(Glob::parse(if tail.is_empty() { "." } else { tail })?)
        } else if text.starts_with('/') || (reading == Reading::Wide && (text == "**" || text.starts_with("**/"))) {
            Pattern::Glob(Glob::parse(&wide)?)
        } else if reading == Reading::Wide && !text.trim_end_matches('/').contains('/') {
            Pattern::Glob(Glob::parse(&format!("**/{wide}"))?)
        } else {
            Pattern::Glob(Glob::below(root, &wide)?)
        };
        Ok(Self { pointer, negated, scope: Scope::Any, pattern })
    }

    fn with<T>(&self, home: Option<&str>, ask: impl FnOnce(&Glob) -> T) -> Option<T> {
        match &self.pattern {
            Pattern::Glob(glob) => Some(ask(glob)),
            Pattern::Home(glob) => Some(ask(&glob.under(home?))),
        }
    }

    /// The same pattern about other uses.
    pub fn scoped(&self, scope: Scope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// Whether it matches an absolute path.
    pub fn matches(&self, path: &str, home: Option<&str>) -> bool {
        self.matches_split(&split(path), home)
    }

    /// Whether it matches an absolute path that [`split`] has split.
    fn matches_split(&self, path: &[&str], home: Option<&str>) -> bool {
        match &self.pattern {
            Pattern::Glob(glob) => glob.matches_split(path),
            Pattern::Home(glob) => {
                let home = home.map(split);
                home.and_then(|home| path.strip_prefix(home.as_slice())).is_some_and(|tail| glob.matches_split(tail))
            }
        }
    }

    /// Whether it surely names something below a folder.
    pub fn is_anchored_below(&self, dir: &str, home: Option<&str>) -> bool {
        !self.negated && self.with(home, |glob| glob.is_anchored_below(dir)).unwrap_or(false)
    }

    /// Whether a folder lies on the way to what it names.
    pub fn leads_through(&self, dir: &str, home: Option<&str>) -> bool {
        !self.negated && self.with(home, |glob| glob.leads_through(dir)).unwrap_or(false)
    }

    /// Whether it may name a path that a pattern matches; `narrow` as in [`Glob::overlaps`].
    pub fn may_name(&self, pattern: &Glob, narrow: bool, home: Option<&str>) -> bool {
        !self.negated && self.with(home, |glob| glob.overlaps(pattern, narrow)).unwrap_or(false)
    }

    /// Whether it names one place and what lies below it, without wildcards in the place's own name.
    pub fn is_a_place(&self, home: Option<&str>) -> bool {
        self.anchor(home).is_some_and(|place| self.covers_below(&place, home))
    }

    /// Whether it names everything below a folder.
    pub fn covers_below(&self, folder: &str, home: Option<&str>) -> bool {
        self.with(home, |glob| glob.covers_below(folder)).unwrap_or(false)
    }

    /// Whether it may name something below a folder, also to take it back.
    pub fn may_name_below(&self, folder: &str, home: Option<&str>) -> bool {
        self.with(home, |glob| glob.leads_through(folder)).unwrap_or(false)
    }

    /// The folder that everything it names lies in, and that is plain.
    pub fn anchor(&self, home: Option<&str>) -> Option<String> {
        self.with(home, Glob::anchor).flatten().filter(|_| !self.negated)
    }

    /// Whether it firmly meets a shell's glob word.
    pub fn meets(&self, word: &Glob, home: Option<&str>) -> bool {
        !self.negated && self.with(home, |glob| glob.meets(word, true)).unwrap_or(false)
    }
}

/// The rule of a list that has the last word on a path; `None` when none matches or a `!pattern` took it back.
pub fn last_word<'a>(rules: &'a [PathRule], path: &str, home: Option<&str>) -> Option<&'a PathRule> {
    last_word_split(rules, &split(path), home)
}

/// [`last_word`] on a path that [`split`] has split.
pub fn last_word_split<'a>(rules: &'a [PathRule], path: &[&str], home: Option<&str>) -> Option<&'a PathRule> {
    last_word_of(rules, path, home, |_| true)
}

/// The same among rules of some scopes. A `!pattern` takes back only what rules of its own scope said.
pub fn last_word_of<'a>(
    rules: &'a [PathRule],
    path: &[&str],
    home: Option<&str>,
    meant: impl Fn(Scope) -> bool,
) -> Option<&'a PathRule> {
    let last = |scope: &Scope| {
        let own = rules.iter().filter(|rule| rule.scope == *scope);
        own.rev().find(|rule| rule.matches_split(path, home)).filter(|rule| !rule.negated)
    };
    Scope::ALL.iter().filter(|scope| meant(**scope)).find_map(last)
}

/// Whether the list names a path and then takes it back: what it says is no secret.
pub fn takes_back(rules: &[PathRule], path: &str, home: Option<&str>) -> bool {
    let path = split(path);
    let own = rules.iter().filter(|rule| rule.scope == Scope::Any);
    let last = own.rev().find(|rule| rule.matches_split(&path, home));
    last.is_some_and(|rule| rule.negated) && last_word_split(rules, &path, home).is_none()
}

/// One entry of a `tools` list: `Tool` or `Tool:pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// The tool's name; may hold `*`.
    pub tool: String,
    /// What the tool must act on.
    pub subject: Option<ToolPattern>,
}

/// The pattern behind `Tool:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolPattern {
    /// A path pattern.
    Path(PathRule),
    /// A text pattern: a command, a URL or host, a subagent's type. `*` matches any text.
    Text(String),
}

/// The tools whose subject is a path.
pub const PATH_TOOLS: [&str; 10] =
    ["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS", "LSP"];
/// The tools whose subject is a text.
pub const TEXT_TOOLS: [&str; 5] = ["Bash", "Monitor", "WebFetch", "Task", "Agent"];
/// Tools that exist, beside the client's own ([`writ_core::OWN_TOOLS`]), and have no subject a rule could name.
pub const OTHER_TOOLS: [&str; 2] = ["WebSearch", "ReadMcpResource"];

/// Why text is no `tools` entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolRuleError {
    /// What stands before the `:` is no tool name.
    #[error("a tool name has letters, digits, `_`, `-`, `.`, `/` and `*` only")]
    Name,
    /// The pattern is empty or has space around it, so that it could never match.
    #[error("the pattern is empty, or begins or ends with a space")]
    Space,
    /// The pattern is no glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl ToolRule {
    /// Compiles one entry.
    pub fn parse(pointer: String, text: &str, root: &str, reading: Reading) -> Result<Self, ToolRuleError> {
        let (tool, pattern) = text.split_once(':').map_or((text, None), |(tool, pattern)| (tool, Some(pattern)));
        if tool.is_empty() || !tool.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | '/')) {
            return Err(ToolRuleError::Name);
        }
        if pattern.is_some_and(|pattern| pattern.trim() != pattern || pattern.is_empty()) {
            return Err(ToolRuleError::Space);
        }
        let subject = match pattern {
            Some(pattern) if PATH_TOOLS.contains(&tool) => {
                Some(ToolPattern::Path(PathRule::parse(pointer.clone(), pattern, root, reading)?))
            }
            None | Some("*") => None,
            Some(pattern) => Some(ToolPattern::Text(pattern.to_owned())),
        };
        Ok(Self { pointer, tool: tool.to_owned(), subject })
    }

    /// The path pattern, where it has one.
    pub const fn path(&self) -> Option<&PathRule> {
        match &self.subject {
            Some(ToolPattern::Path(path)) => Some(path),
            Some(ToolPattern::Text(_)) | None => None,
        }
    }

    /// Whether no call can ever match it.
    pub fn never_applies(&self) -> bool {
        self.has_no_text() || self.names_no_tool() || self.is_of_no_program()
    }

    /// Whether it has a pattern for calls that have nothing that one could match.
    pub fn has_no_text(&self) -> bool {
        let named = || OTHER_TOOLS.iter().chain(&OWN_TOOLS).any(|tool| *tool == self.tool);
        self.subject.is_some() && (self.tool.starts_with("mcp__") || named())
    }

    /// Whether it is written as some clients have programs, `Bash:rm:*`: here that is a program whose name ends in a colon.
    pub fn is_of_no_program(&self) -> bool {
        let Some(ToolPattern::Text(pattern)) = &self.subject else { return false };
        let plain = |name: &str| !name.is_empty() && !name.contains([' ', '*', ':']);
        matches!(self.tool.as_str(), "Bash" | "Monitor") && pattern.strip_suffix(":*").is_some_and(plain)
    }

    /// Whether it is written as one of a server's tools, and the server or the tool is missing: `mcp__srv__`.
    pub fn names_no_tool(&self) -> bool {
        let Some(rest) = self.tool.strip_prefix("mcp__") else {
            return self.tool.to_ascii_lowercase().starts_with("mcp__");
        };
        let missing = rest.split_once("__").is_some_and(|(server, tool)| server.is_empty() || tool.is_empty());
        rest.is_empty() || missing && !rest.contains('*')
    }

    /// Whether the rule is about a tool of one of these names.
    pub fn is_about_any(&self, names: [&str; 2], reading: Reading) -> bool {
        let [own, known_as] = names;
        self.is_about(own, reading)
            || (own != known_as && (self.is_about(known_as, reading) || self.is_joined(names, reading)))
            || (reading == Reading::Wide && self.is_of_any_server(known_as))
    }

    /// Whether it is about this tool of some server, where the client does not tell which: `mcp__*__tool`.
    fn is_of_any_server(&self, known_as: &str) -> bool {
        let Some((rule, tool)) = self.tool.strip_prefix("mcp__").zip(known_as.strip_prefix("mcp__*__")) else {
            return false;
        };
        let mut parted = rule.match_indices("__").peekable();
        parted.peek().is_none()
            || parted.any(|(at, sign)| rule.get(at + sign.len()..).is_some_and(|own| text_matches(own, tool)))
    }

    /// Whether it is about a server's tool that the client calls by a name in which server and tool are parted as names themselves are:
    /// `my_srv_echo` is `srv_echo` of `my`, or `echo` of `my_srv`.
    fn is_joined(&self, [own, known_as]: [&str; 2], reading: Reading) -> bool {
        if own.starts_with("mcp__") || !known_as.starts_with("mcp__") || !self.tool.starts_with("mcp__") {
            return false;
        }
        let flat = |name: &str| name.replace("__", "_").replace('-', "_");
        let (rule, tool) = (flat(&self.tool), flat(known_as));
        let server = self.tool.matches("__").count() == 1 && reading == Reading::Wide;
        text_matches(&rule, &tool) || (server && tool.strip_prefix(&rule).is_some_and(|rest| rest.starts_with('_')))
    }

    /// Whether the rule is about `tool`.
    pub fn is_about(&self, tool: &str, reading: Reading) -> bool {
        let (own, tool) = (current_name(&self.tool), current_name(tool));
        let server = |own: &str| own.starts_with("mcp__") && own.matches("__").count() == 1;
        own == tool
            || text_matches(own, tool)
            || (tool.strip_prefix(own).is_some_and(|rest| rest.starts_with("__")) && server(own))
            || (reading == Reading::Wide && own == "Edit" && tool == "MultiEdit")
    }
}

/// The name the client uses today.
fn current_name(tool: &str) -> &str {
    match tool {
        "Task" => "Agent",
        other => other,
    }
}

/// Whether a pattern in which `*` is any text matches all of `text`.
pub fn text_matches(pattern: &str, text: &str) -> bool {
    // Most patterns fail at their first letter.
    let (first, found) = (pattern.as_bytes().first(), text.as_bytes().first());
    if first.is_some_and(|first| *first != b'*' && Some(first) != found) {
        return false;
    }
    let mut pieces = pattern.split('*');
    let Some(rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_name_may_be_any_of_its_partings() {
        let about = |rule: &str, own: &str, known_as: &str, reading| {
            let rule = ToolRule::parse(String::new(), rule, "/w", reading).unwrap();
            rule.is_about_any([own, known_as], reading)
        };
        for (rule, wide, narrow) in [
            ("mcp__my_srv__echo", true, true),
            ("mcp__my__srv_echo", true, true),
            ("mcp__my_srv", true, false),
            ("mcp__my_srv__*", true, true),
            ("mcp__my_srv__other", false, false),
            ("mcp__my_sr", false, false),
        ] {
            assert_eq!(about(rule, "my_srv_echo", "mcp__my__srv_echo", Reading::Wide), wide, "{rule}");
            assert_eq!(about(rule, "my_srv_echo", "mcp__my__srv_echo", Reading::Narrow), narrow, "{rule}");
        }
        assert!(about("mcp__my-srv__danger", "my-srv-danger", "mcp__my__srv-danger", Reading::Wide));
        assert!(!about("mcp__a_b__c", "mcp__a__b_c", "mcp__a__b_c", Reading::Wide), "one that says which it is");
    }

    #[test]
    fn a_tool_of_an_unknown_server_may_be_of_any() {
        let about = |rule: &str, reading| {
            let rule = ToolRule::parse(String::new(), rule, "/w", reading).unwrap();
            rule.is_about_any(["MCP:delete", "mcp__*__delete"], reading)
        };
        for (rule, wide, narrow) in [
            ("mcp__github__delete", true, false),
            ("mcp__my__srv__del*", true, false),
            ("mcp__github", true, false),
            ("mcp__git*", true, false),
            ("mcp__github__create", false, false),
            ("mcp__*__delete", true, true),
            ("mcp__*", true, true),
            ("*", true, true),
            ("Bash", false, false),
        ] {
            assert_eq!((about(rule, Reading::Wide), about(rule, Reading::Narrow)), (wide, narrow), "{rule}");
        }
    }

    fn hit(text: &str, reading: Reading, path: &str) -> bool {
        PathRule::parse(String::new(), text, "/w", reading).unwrap().matches(path, Some("/h"))
    }

    #[test]
    fn deny_reads_wide_and_allow_reads_narrow() {
        assert!(hit(".env", Reading::Wide, "/w/a/.env") && hit(".env", Reading::Wide, "/elsewhere/.env"));
        assert!(hit(".env", Reading::Narrow, "/w/.env") && !hit(".env", Reading::Narrow, "/w/a/.env"));
        assert!(hit("secrets/**", Reading::Wide, "/w/secrets") && !hit("secrets/**", Reading::Wide, "/x/secrets/a"));
        assert!(hit("**/secrets/**", Reading::Wide, "/x/secrets/a") && !hit("**/a", Reading::Narrow, "/x/a"));
        assert!(hit("conf", Reading::Wide, "/w/conf/a/b") && !hit("conf", Reading::Narrow, "/w/conf/a"));
        assert!(hit("~/.ssh/**", Reading::Wide, "/h/.ssh/id") && !hit("~/.ssh/**", Reading::Wide, "/w/.ssh/id"));
        assert!(hit("/etc/*", Reading::Wide, "/etc/passwd") && !hit("/etc/*", Reading::Narrow, "/etc/a/b"));
    }

    #[test]
    fn the_last_match_has_the_word() {
        let rules: Vec<PathRule> = ["**/.env*", "!**/.env.example"]
            .iter()
            .map(|text| PathRule::parse(String::new(), text, "/w", Reading::Wide).unwrap())
            .collect();
        assert!(last_word(&rules, "/w/.env.local", None).is_some());
        assert!(last_word(&rules, "/w/.env.example", None).is_none());
    }

    #[test]
    fn tool_names() {
        let about = |rule: &str, tool: &str, reading| {
            ToolRule::parse(String::new(), rule, "/w", reading).unwrap().is_about(tool, reading)
        };
        assert!(about("Task", "Agent", Reading::Narrow) && about("Agent", "Task", Reading::Narrow));
        assert!(about("mcp__a__*", "mcp__a__b", Reading::Narrow) && about("mcp__a", "mcp__a__b", Reading::Narrow));
        assert!(!about("mcp__a", "mcp__ab__c", Reading::Narrow));
        assert!(about("Edit", "MultiEdit", Reading::Wide) && !about("Edit", "MultiEdit", Reading::Narrow));
    }

    #[test]
    fn entries_that_could_never_match_are_errors() {
        let parse = |text: &str| ToolRule::parse(String::new(), text, "/w", Reading::Wide).map(drop);
        for good in ["Bash", "Bash:rm *", "Bash:*", "mcp__a-b__c.d*", "*", "Read:src/**", "WebFetch:domain:x.com"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for bad in ["", ":x", "Bash(rm *)", "Bash: rm", "Bash:rm ", "Bash:", "Bash rm", "Read:", " Bash"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse("Read:[a"), Err(ToolRuleError::Glob(GlobError::OpenClass)));
    }

    #[test]
    fn tools_of_servers_that_are_not_named() {
        let none = |text: &str| ToolRule::parse(String::new(), text, "/w", Reading::Wide).unwrap().names_no_tool();
        assert!(none("mcp__") && none("mcp__srv__") && none("mcp____x"));
        for good in ["mcp__srv", "mcp__srv__x", "mcp__srv__*", "mcp__*", "mcp__srv___", "mcp__a__b__", "Bash"] {
            assert!(!none(good), "{good}");
        }
    }

    #[test]
    fn texts() {
        assert!(
            text_matches("a*c", "abc")
                && text_matches("*", "")
                && text_matches("a*", "a")
                && text_matches("*b*", "abc")
        );
        assert!(!text_matches("a*c", "abd") && !text_matches("ab*ba", "aba") && !text_matches("", "x"));
    }
}
