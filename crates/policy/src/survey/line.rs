//! A shell line's commands, files and hosts as facts (R20).

use writ_core::{Span, Subject};
use writ_shell::{
    Access, Analysis, Arrival, Command, Dir, Env, FileUse, NetTarget, NetUse, Part, RepositoryUse, Source, Sources,
    Word, analyze_with,
};

use super::paths::PATH_MAX;
use super::{Survey, allowed, hits};
use crate::command::Candidate;
use crate::facts::{Host, HostFact, PathFact, PathKind, SYNTAX, TextFact, UnresolvedFact, kind_word};
use crate::protect::is_reserved;
use crate::rules::last_word_split;
use crate::url::{self, Target};
use crate::world::{Search, World, expand};

/// Stands for an unknown part of a path. Holds no slash and no dot.
const UNKNOWN: &str = "writ-unknown";

/// What the agent wrote, as the world knows it.
struct Authored<'w>(&'w dyn World);

impl Sources for Authored<'_> {
    fn authored(&self, path: &str) -> Option<String> {
        self.0.authored(path)
    }
}

impl Survey<'_> {
    pub(super) fn shell(&mut self, line: &str) {
        let env = Env { home: self.setting.home.clone(), cwd: Some(self.call.cwd.clone()), ..Env::default() };
        let analysis = analyze_with(line, &env, &Authored(self.world));
        if let Some((message, span)) = &analysis.syntax_error {
            let what = message.clone();
            self.facts.unresolved.push(UnresolvedFact { kind: SYNTAX.to_owned(), what, span: Some(*span) });
        }
        for command in &analysis.commands {
            self.command(command, &analysis);
        }
        for file in &analysis.files {
            self.file_use(file);
        }
        for guess in &analysis.guesses {
            self.guess(guess);
        }
        for arrival in &analysis.arrivals {
            self.arrival(arrival);
        }
        for given in &analysis.given {
            self.given(given);
        }
        for act in &analysis.repositories {
            self.repository(act, moves_commits(&analysis, act));
        }
        for net in &analysis.nets {
            self.net(net, &analysis);
        }
        for word in &analysis.mentions {
            self.mention(word);
        }
        for open in &analysis.unresolved {
            let kind = kind_word(open.kind).to_owned();
            self.facts.unresolved.push(UnresolvedFact { kind, what: open.what.clone(), span: Some(open.span) });
            for word in &open.mentions {
                self.mention(word);
            }
        }
    }

    fn net(&mut self, net: &NetUse, analysis: &Analysis) {
        let host = match &net.target {
            NetTarget::Unknown => Host::Unknown,
            NetTarget::Host(word) => word.literal().map_or(Host::Unknown, |text| url::read_host(&text)),
            NetTarget::Url(word) => match word.literal().map(|text| url::read(&text)) {
                None => partly_known(word),
                Some(Target::Host(host)) => host,
                Some(Target::File(path)) => {
                    let fact = self.path(&path, Access::Read, Some(net.span));
                    return self.facts.paths.push(fact);
                }
            },
        };
        // An expansion that may be empty gives the word twice; without its host it is no URL, and says nothing.
        let twice = |other: &NetUse| other.span == net.span && !is_known(&other.target);
        if host == Host::Ambiguous && is_known(&net.target) && analysis.nets.iter().any(twice) {
            return;
        }
        self.facts.hosts.push(HostFact { host, mentioned: false, span: Some(net.span) });
    }

    fn command(&mut self, command: &Command, analysis: &Analysis) {
        let candidate = Candidate::of(command);
        let tool = self.call.tool.as_str();
        let mut found = hits(self.policy, tool, |pattern| candidate.denied_by(pattern));
        if self.facts.shell {
            found.extend(hits(self.policy, "Bash", |pattern| candidate.denied_by(pattern)));
        }
        found.dedup();
        let named = allowed(self.policy, tool, |pattern| candidate.allowed_by(pattern));
        let needless = candidate.is_harmless() || candidate.is_wrapper_of(command, &analysis.commands);
        self.facts.texts.push(TextFact {
            subject: Subject::Command,
            name: candidate.program().to_owned(),
            span: Some(command.span),
            hits: found,
            allowed: named.or_else(|| needless.then(|| "writ:builtin".to_owned())),
            reserved: is_reserved(&candidate),
            possible: false,
            text: candidate.text(),
        });
    }

    fn file_use(&mut self, file: &FileUse) {
        for absolute in self.places(file, &file.path) {
            self.touch(file, &absolute, file.path.is_glob());
        }
        self.unlikely(file);
    }

    /// Where a path may lie, absolute and not folded: one place for each folder the command may run in.
    fn places(&mut self, file: &FileUse, path: &Word) -> Vec<String> {
        let Some(text) = path_text(path) else { return Vec::new() };
        if self.is_too_long(&text) {
            return Vec::new();
        }
        let base = |dir: &Dir| match dir {
            Dir::Start(_) => self.start(dir),
            Dir::Unknown => (text.starts_with('/') || text.starts_with("~/")).then(|| "/".to_owned()),
        };
        file.dirs.iter().filter_map(base).map(|base| self.absolute(&base, &text)).collect()
    }

    /// A folder that a command may run in, absolute; `None` where it is not known.
    pub(super) fn start(&self, dir: &Dir) -> Option<String> {
        match dir {
            Dir::Start(dir) => Some(self.absolute(&self.call.cwd, dir)),
            Dir::Unknown => None,
        }
    }

    fn touch(&mut self, file: &FileUse, absolute: &str, is_glob: bool) {
        if is_harmless_device(absolute) {
            return;
        }
        let mut fact = self.path(absolute, file.access, Some(file.span));
        fact.tree = file.tree;
        if is_glob {
            self.glob(absolute, &mut fact);
        }
        self.tree(&fact, None);
        self.facts.paths.push(fact);
    }

    /// An operand that may be a path: it is one where there is such a file, or where a rule names it.
    fn guess(&mut self, file: &FileUse) {
        if path_text(&file.path).is_some_and(|text| text.len() > PATH_MAX) {
            return;
        }
        for absolute in self.places(file, &file.path) {
            let fact = self.path(&absolute, file.access, Some(file.span));
            if file.path.is_glob() || self.is_named(&fact) || self.exists(&fact.written) {
                self.touch(file, &absolute, file.path.is_glob());
            }
        }
    }

    /// Whether a rule that forbids names a path.
    pub(super) fn is_named(&self, fact: &PathFact) -> bool {
        let (files, home) = (&self.policy.files, self.setting.home.as_deref());
        let spellings = fact.spellings();
        let listed = |rules| spellings.iter().any(|path| last_word_split(rules, path, home).is_some());
        listed(&files.deny)
            || (fact.access == Access::Write && listed(&files.read_only))
            || self.setting.violated(fact).is_some()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        let Some((folder, name)) = path.rsplit_once('/') else { return false };
        let folder = if folder.is_empty() { "/" } else { folder };
        self.world.list(folder).is_some_and(|entries| entries.iter().any(|entry| entry.name == name))
    }

    /// What lands in a folder is written there under its own name; where the target is no folder, it is what is written.
    fn arrival(&mut self, arrival: &Arrival) {
        let target = &arrival.target;
        for place in self.places(target, &target.path) {
            if is_harmless_device(&place) {
                continue;
            }
            let in_folder = arrival.in_folder || self.world.resolve(&self.without_proc(&place)).is_dir;
            let names = arrival.source.as_ref().map(|source| self.names(target, source));
            let written = match names {
                None | Some(None) if in_folder || arrival.source.is_none() => {
                    let mut fact = self.path(&place, Access::Write, Some(target.span));
                    (fact.tree, fact.kind) = (true, PathKind::Into);
                    self.facts.paths.push(fact);
                    continue;
                }
                Some(Some(names)) if in_folder => names.iter().map(|name| format!("{place}/{name}")).collect(),
                _ => vec![place],
            };
            for path in &written {
                if let Some(fact) = self.template(arrival, path) {
                    self.facts.paths.push(fact);
                    continue;
                }
                self.touch(target, path, target.path.is_glob());
                if let Some(source) = arrival.source.as_ref().filter(|_| arrival.link) {
                    self.link(target, path, source);
                }
            }
        }
    }

    /// The names that a source's files have; `None` where nobody knows them yet.
    fn names(&mut self, target: &FileUse, source: &Word) -> Option<Vec<String>> {
        let text = path_text(source).unwrap_or_else(|| UNKNOWN.to_owned());
        let name = |path: &str| path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().to_owned();
        if !source.is_glob() {
            return Some(vec![name(&text)]);
        }
        let mut names = Vec::new();
        for place in self.places(target, source) {
            if let Search::Done(found) = expand(self.world, &place) {
                names.extend(found.iter().map(|path| name(path)));
            }
        }
        (!names.is_empty()).then_some(names)
    }

    /// What a symbolic link leads to, seen from the folder it is in. Whoever has the link can write through it.
    fn link(&mut self, target: &FileUse, link: &str, source: &Word) {
        let Some(text) = path_text(source).filter(|text| !self.is_too_long(text)) else { return };
        let folder = link.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let place = self.absolute(folder, &text);
        for (access, tree) in [(Access::Read, true), (Access::Write, false)] {
            let through = FileUse { access, tree, ..target.clone() };
            self.touch(&through, &place, source.is_glob());
        }
    }

    /// Where the path lies if a `cd` fails.
    fn unlikely(&mut self, file: &FileUse) {
        let Some(text) = path_text(&file.path).filter(|text| !text.starts_with('/')) else { return };
        for dir in &file.unlikely {
            let Dir::Start(dir) = dir else { continue };
            let absolute = self.absolute(&self.absolute(&self.call.cwd, dir), &text);
            let mut fact = self.path(&absolute, file.access, Some(file.span));
            (fact.tree, fact.kind) = (file.tree, PathKind::Unlikely);
            self.facts.paths.push(fact);
        }
    }

    fn glob(&mut self, absolute: &str, fact: &mut PathFact) {
        fact.kind = PathKind::Glob;
        if !self.expanded.insert((absolute.to_owned(), fact.access, fact.tree)) {
            // What it expands to is on record; without it, the glob itself is judged as if it matched nothing.
            fact.kind = PathKind::ExpandedGlob;
            return;
        }
        if self.left == 0 {
            return self.too_large(fact);
        }
        let expansion = match expand(self.world, absolute) {
            Search::Done(found) if found.len() <= self.left => found,
            Search::Done(_) | Search::TooLarge => return self.too_large(fact),
        };
        self.left = self.left.saturating_sub(expansion.len().max(1));
        if !expansion.is_empty() {
            fact.kind = PathKind::ExpandedGlob;
        }
        for path in expansion {
            let mut found = self.path(&path, fact.access, fact.span);
            found.kind = PathKind::Found;
            found.tree = fact.tree;
            self.tree(&found, None);
            self.facts.paths.push(found);
        }
    }

    /// Text in foreign code. Kept only where a deny rule hits it: the rest may be anything, secrets included (R8).
    fn mention(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return };
        let host = match text.contains("://").then(|| url::read(&text)) {
            Some(Target::Host(Host::Name(name))) => name,
            Some(_) => return,
            None => return self.mentioned_path(&text, word.span),
        };
        let fact = HostFact { host: Host::Name(host), mentioned: true, span: Some(word.span) };
        if self.policy.domains.refusal(&fact).is_some() {
            self.facts.hosts.push(fact);
        }
    }

    fn mentioned_path(&mut self, text: &str, span: Span) {
        let mut fact = self.path(&self.absolute(&self.call.cwd, text), Access::Read, Some(span));
        fact.kind = PathKind::Mentioned;
        let home = self.setting.home.as_deref();
        let deny = &self.policy.files.deny;
        if fact.spellings().iter().any(|path| last_word_split(deny, path, home).is_some()) {
            self.facts.paths.push(fact);
        }
    }
}

/// Whether an earlier command of the line changes what names of commits stand for.
fn moves_commits(analysis: &Analysis, act: &RepositoryUse) -> bool {
    let relative = |word: &Word| {
        word.literal().is_none_or(|text| text.contains("HEAD") || text.contains(['~', '^', '@']) || text.is_empty())
    };
    analysis.commands.iter().filter(|command| command.span.end <= act.span.start).any(|command| {
        let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        let has = |name: &str| words.iter().skip(1).any(|word| word == name);
        let git = words.first().is_some_and(|name| name.rsplit('/').next() == Some("git"));
        let resets = words
            .iter()
            .position(|word| word == "reset")
            .is_some_and(|at| words.iter().skip(at + 1).any(|word| !word.starts_with('-') && word != "HEAD"));
        let stages = has("read-tree") || has("update-index") || (has("rm") && has("--cached"));
        let renames = has("update-ref") || has("symbolic-ref") || resets || stages || has("replace");
        let renames = renames || (has("fetch") && words.iter().any(|word| word.contains(':') && !word.contains("//")));
        let forces = (has("branch") || has("tag")) && (has("-f") || has("--force"));
        git && (renames || forces || (has("commit") && act.revisions.iter().any(relative)))
    })
}

fn is_known(target: &NetTarget) -> bool {
    matches!(target, NetTarget::Url(word) | NetTarget::Host(word) if word.literal().is_some())
}

/// A URL whose host is certain although its path (`https://x.com/$P`) or its port (`localhost:$PORT`) is not.
fn partly_known(word: &Word) -> Host {
    let mut known = String::new();
    let mut behind = None;
    for part in &word.parts {
        match part {
            Part::Unknown(_) if behind.is_none() => behind = Some(String::new()),
            Part::Unknown(_) => {}
            Part::Text(text) | Part::Glob(text) => behind.as_mut().unwrap_or(&mut known).push_str(text),
        }
    }
    let rest = known.split_once("://").map_or(known.as_str(), |(_, rest)| rest);
    // A port that is any text may hold an `@`, and the host behind it: taken for one only on this machine, and where the line
    // did not make it.
    let harmless = |part: &Part| !matches!(part, Part::Unknown(Source::Listed(_) | Source::Any | Source::Words));
    let is_number = word.parts.iter().all(harmless)
        && behind.is_some_and(|text| text.is_empty() || text.starts_with(['/', '?', '#']));
    let port = rest.split_once(':').filter(|(host, port)| {
        is_number
            && !host.is_empty()
            && !rest.contains('@')
            && !rest.contains('/')
            && port.chars().all(|c| c.is_ascii_digit())
    });
    let certain = match port {
        Some((host @ ("localhost" | "127.0.0.1"), _)) => host,
        None if rest.contains('/') => known.as_str(),
        Some(_) | None => return Host::Unknown,
    };
    match url::read(certain) {
        Target::Host(host) => host,
        Target::File(_) => Host::Unknown,
    }
}

fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/stdin"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/random"
            | "/dev/urandom"
    )
}

/// A path operand as text; `None` when nothing of it is known.
fn path_text(word: &Word) -> Option<String> {
    if word.parts.iter().all(Part::is_unknown) {
        return None;
    }
    Some(
        word.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) | Part::Glob(text) => text.as_str(),
                Part::Unknown(_) => UNKNOWN,
            })
            .collect(),
    )
}
