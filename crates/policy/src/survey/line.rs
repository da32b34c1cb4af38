//! A shell line's commands, files and hosts as facts (R20).

use std::borrow::Cow;
use std::cell::OnceCell;

use writ_core::{Span, Subject};
use writ_shell::{
    Access, Analysis, Command, Dir, Env, FileUse, NetTarget, NetUse, Part, RepositoryUse, Source, Sources, Word,
    analyze_with,
};

use super::arrivals::is_harmless_device;
use super::changes::Changes;
use super::endings::{Ends, ends_own};
use super::open::Spelled;
use super::paths::PATH_MAX;
use super::pattern::rough_glob;
use super::{Survey, allowed, hits};
use crate::command::{Candidate, is_by_path};
use crate::facts::{Host, HostFact, PathFact, PathKind, SYNTAX, TextFact, UnresolvedFact, kind_word};
use crate::glob::name::unquoted;
use crate::ignore::toplevel;
use crate::protect::{is_reserved, is_reserved_as};
use crate::rules::last_word_split;
use crate::url::{self, Target};
use crate::world::{Search, World, fold};

/// Longest list of names that is read from a file.
const MOST_NAMES: usize = 4 << 10;

/// Whether there surely is nothing at a path: its folder can be listed, and has no such name.
fn is_missing(world: &dyn World, path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let entries = world.list(if folder.is_empty() { "/" } else { folder });
    entries.is_some_and(|entries| entries.iter().all(|entry| entry.name != name))
}

/// What the agent wrote, as the world knows it.
struct Authored<'w>(&'w dyn World, OnceCell<Vec<String>>);

impl Sources for Authored<'_> {
    fn authored(&self, path: &str) -> Option<String> {
        self.0.authored(path)
    }

    fn any(&self) -> bool {
        self.0.has_authored()
    }

    fn files(&self) -> &[String] {
        self.1.get_or_init(|| self.0.authored_files())
    }

    fn names(&self, path: &str, folder: &str) -> Option<String> {
        let text = String::from_utf8(self.0.read(path, 0, MOST_NAMES)?).ok().filter(|text| text.len() < MOST_NAMES)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '+' | '@');
        let name = |line: &str| {
            !line.is_empty() && !line.starts_with('-') && line.chars().all(plain) && {
                let place = if line.starts_with('/') { fold(line) } else { fold(&format!("{folder}/{line}")) };
                !is_missing(self.0, &place)
            }
        };
        text.lines().take(MOST_NAMES).all(name).then_some(text)
    }
}

impl Survey<'_> {
    /// The folders that the line itself makes: what it copies there later lands in them.
    fn note_folders(&mut self, analysis: &Analysis) {
        let commands = analysis.commands.iter().filter(|command| makes_folders(command));
        let makers: Vec<Span> = commands.map(|command| command.span).collect();
        let within = |span: Span| makers.iter().any(|own| own.start <= span.start && span.end <= own.end);
        let written = self.facts.paths.iter().filter(|fact| fact.access == Access::Write);
        self.made = written.filter(|fact| fact.span.is_some_and(within)).map(|fact| fact.written.clone()).collect();
    }

    pub(super) fn shell(&mut self, line: &str) {
        let (home, cwd) = (self.setting.home.clone(), Some(self.call.cwd.clone()));
        // It costs a look at every folder above, and few lines ask for it.
        let asked = line.contains("toplevel") || line.contains("git");
        let toplevel = asked.then(|| toplevel(self.world, &self.call.cwd)).flatten();
        let mut analysis = analyze_with(line, &Env { home, cwd, toplevel }, &Authored(self.world, OnceCell::new()));
        self.listings = std::mem::take(&mut analysis.listings);
        if let Some((message, span)) = &analysis.syntax_error {
            let what = message.clone();
            self.facts.unresolved.push(UnresolvedFact { kind: SYNTAX.to_owned(), what, span: Some(*span) });
        }
        for command in &analysis.commands {
            self.command(command, &analysis);
        }
        self.removals =
            analysis.commands.iter().filter(|command| removes(command)).map(|command| command.span).collect();
        for file in &analysis.files {
            self.removing = self.removals.iter().any(|own| own.start <= file.span.start && file.span.end <= own.end);
            self.file_use(file);
        }
        self.removing = false;
        for guess in &analysis.guesses {
            self.guess(guess);
        }
        self.note_folders(&analysis);
        for arrival in &analysis.arrivals {
            self.arrival(arrival);
        }
        for given in &analysis.unknown_uses {
            self.unknown_use(given);
        }
        let earlier = self.changes.before(Span { start: 0, end: 0 }).cloned().collect();
        self.changes = Changes::of(line, &analysis, earlier);
        self.gits = analysis.commands.iter().filter(|command| is_git(command)).map(|command| command.span).collect();
        for act in &analysis.repositories {
            self.repository(act, moves_commits(&analysis, act));
        }
        for net in &analysis.nets {
            self.net(net, &analysis);
        }
        self.line_resources(&analysis);
        self.line_flows(&analysis);
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
                    if let Some(rest) = self.through.take() {
                        self.behind_process(Access::Read, false, Some(net.span), rest);
                    }
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
        let places = self.places_of(command);
        let place = places.first().map(|place| self.below_root(place));
        let candidate = Candidate::of(command).at(places);
        let denied = |pattern: &str| {
            candidate.denied_by(pattern).or_else(|| candidate.is_denied_at(&self.rooted(&candidate, pattern)))
        };
        let names = self.facts.names();
        let mut found = hits(self.policy, names, denied);
        if self.facts.shell {
            found.extend(hits(self.policy, ["Bash"; 2], denied));
        }
        found.dedup();
        let named = allowed(self.policy, names, |pattern| candidate.allowed_by(&self.rooted(&candidate, pattern)));
        let text = place.as_ref().map_or_else(|| candidate.text(), |place| candidate.text_as(place));
        self.label_text(|pattern| candidate.denied_by(pattern));
        let ends = ends_own(command, &candidate, analysis);
        let needless = candidate.is_harmless() || candidate.is_wrapper_of(command, &analysis.commands);
        self.facts.texts.push(TextFact {
            subject: Subject::Command,
            name: candidate.program().to_owned(),
            place,
            span: Some(command.span),
            hits: found,
            allowed: named.or_else(|| needless.then(|| "writ:builtin".to_owned())),
            reserved: is_reserved(&candidate) || self.is_program_renamed(command, &candidate) || ends == Ends::Own,
            possible: false,
            text,
        });
        if ends == Ends::Perhaps {
            self.facts.texts.push(TextFact {
                subject: Subject::Command,
                name: candidate.program().to_owned(),
                place: None,
                span: Some(command.span),
                hits: Vec::new(),
                allowed: Some("writ:possible".to_owned()),
                reserved: true,
                possible: true,
                text: candidate.program().to_owned(),
            });
        }
    }

    /// Which file the program is that a command names by its path: by its name, with the links of its folders followed, and where that
    /// leads. None where it may start in folders that give several.
    fn places_of(&self, command: &Command) -> Vec<String> {
        let name = command.words.first().and_then(Word::literal).filter(|name| is_by_path(name));
        let Some(name) = name else { return Vec::new() };
        let place = |dir: &Dir| Some(self.placed(&self.without_proc(&self.absolute(&self.start(dir)?, &name))));
        let mut all = command.dirs.iter().map(place);
        let Some(Some(first)) = all.next() else { return Vec::new() };
        if all.any(|other| other.as_ref() != Some(&first)) {
            return Vec::new();
        }
        let leads = self.resolve(&first).path;
        let leads = (leads != first).then_some(leads);
        std::iter::once(first).chain(leads).collect()
    }

    /// A path with the links of its folders followed, and its own name.
    fn placed(&self, path: &str) -> String {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        if matches!(name, "" | "." | "..") {
            return self.resolve(path).path;
        }
        let folder = self.resolve(if folder.is_empty() { "/" } else { folder }).path;
        format!("{}/{name}", folder.trim_end_matches('/'))
    }

    /// A path as the policy's folder sees it.
    fn below_root(&self, path: &str) -> String {
        let root = self.resolve(&self.policy.files.root).path;
        let below = path.strip_prefix(&root).and_then(|rest| rest.strip_prefix('/'));
        below.map_or_else(|| path.to_owned(), |below| format!("./{below}"))
    }

    /// A pattern of commands with the path of its program, if it has one, as [`Self::placed`] tells those of commands.
    fn rooted<'p>(&self, candidate: &Candidate, pattern: &'p str) -> Cow<'p, str> {
        let (named, rest) = pattern.split_at(pattern.find(' ').unwrap_or(pattern.len()));
        if !named.contains('/') || !candidate.may_lie_at(pattern) {
            return Cow::Borrowed(pattern);
        }
        let path = self.absolute(&self.policy.files.root, named);
        // As far as it has no `*`.
        let known = path.find('*').map_or(path.as_str(), |star| path.get(..star).unwrap_or_default());
        let folder = known.rfind('/').map_or(0, |at| at + 1);
        let (folder, name) = path.split_at(folder);
        let folder = self.resolve(if folder.len() > 1 { folder.trim_end_matches('/') } else { "/" }).path;
        Cow::Owned(format!("{}/{name}{rest}", folder.trim_end_matches('/')))
    }

    /// Whether a command that only a human may run is given to a copy of Writ's program.
    fn is_program_renamed(&self, command: &Command, candidate: &Candidate) -> bool {
        let Some(name) = command.words.first().and_then(Word::literal) else { return false };
        if !is_reserved_as("writ", candidate) || writ_shell::is_known(&name) {
            return false;
        }
        let at = |folder: &str| self.absolute(folder, &name);
        let home = self
            .setting
            .home
            .iter()
            .flat_map(|home| [".local/bin", "bin", ".cargo/bin"].map(|bin| format!("{home}/{bin}")));
        let places: Vec<String> = if name.contains('/') {
            command.dirs.iter().filter_map(|dir| self.start(dir)).map(|dir| at(&dir)).collect()
        } else {
            home.chain(["/usr/local/bin".to_owned()]).map(|dir| at(&dir)).collect()
        };
        places.iter().any(|place| self.world.is_copy_of_program(&self.resolve(place).path))
    }

    pub(super) fn file_use(&mut self, file: &FileUse) {
        for dir in &file.dirs {
            self.without_output(file, dir);
            match self.spell(dir, &file.path) {
                Spelled::Known(path, glob) => {
                    if !self.is_too_long(&path) {
                        self.touch(file, &path, glob);
                    }
                }
                Spelled::Listed(before, index, after) => self.listed_use(file, dir, (&before, index, &after), false),
                Spelled::Open(parts) => self.open_use(file, &parts),
            }
        }
        self.if_cd_fails(file);
    }

    /// A command that fails prints nothing: what stands behind a text that it should print is the path then.
    fn without_output(&mut self, file: &FileUse, dir: &Dir) {
        let printed = |part: &Part| matches!(part, Part::Unknown(Source::Number | Source::Fresh));
        let Some(at) = file.path.parts.iter().rposition(printed) else { return };
        let rest = file.path.parts.get(at + 1..).unwrap_or_default();
        let [Part::Text(rest)] = rest else { return };
        let start = self.start(dir).unwrap_or_else(|| self.call.cwd.clone());
        let mut fact = self.path(&self.absolute(&start, rest), file.access, Some(file.span));
        if self.is_named(&fact) && self.exists(&fact.resolved) {
            fact.kind = PathKind::Perhaps;
            self.facts.paths.push(fact);
        }
    }

    /// A folder that a command may run in, absolute; `None` where it is not known.
    pub(super) fn start(&self, dir: &Dir) -> Option<String> {
        match dir {
            Dir::Start(dir) => Some(self.absolute(&self.call.cwd, dir)),
            Dir::Open(_) | Dir::Unknown => None,
        }
    }

    pub(super) fn touch(&mut self, file: &FileUse, absolute: &str, is_glob: bool) {
        if is_harmless_device(absolute) {
            return;
        }
        let literal = if is_glob { unquoted(absolute) } else { absolute.to_owned() };
        let mut fact = self.path(&literal, file.access, Some(file.span));
        fact.tree = file.tree;
        let through = self.through.take();
        if let Some(rest) = through.filter(|rest| !rest.is_empty() || file.tree || file.access != Access::List) {
            self.behind_process(file.access, file.tree, Some(file.span), rest);
        }
        if is_glob && self.glob_leads_through(absolute) {
            self.behind_process(file.access, file.tree, Some(file.span), String::new());
        }
        if is_glob {
            fact.written = fold(&rough_glob(absolute));
            self.glob(absolute, &mut fact);
        }
        self.tree(&fact);
        self.facts.paths.push(fact);
    }

    /// An operand that may be a path: it is one where there is such a file, or where a rule names it.
    fn guess(&mut self, file: &FileUse) {
        for dir in &file.dirs {
            match self.spell(dir, &file.path) {
                Spelled::Known(path, _) if path.len() > PATH_MAX => {}
                Spelled::Known(path, glob) => {
                    let fact = self.path(&path, file.access, Some(file.span));
                    let through = self.through.take().is_some();
                    if glob || through || self.is_named(&fact) || self.exists(&fact.written) {
                        self.touch(file, &path, glob);
                    }
                }
                Spelled::Listed(before, index, after) => self.listed_use(file, dir, (&before, index, &after), false),
                Spelled::Open(parts) => {
                    // A value from outside, or a number, is most likely a revision.
                    if parts.iter().any(|part| matches!(part, Part::Unknown(source) if source.is_made())) {
                        self.open_use(file, &parts);
                    }
                }
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
            || self.is_labelled(fact)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        let Some((folder, name)) = path.rsplit_once('/') else { return false };
        let folder = if folder.is_empty() { "/" } else { folder };
        self.world.list(folder).is_some_and(|entries| entries.iter().any(|entry| entry.name == name))
    }

    /// Where the path lies if a `cd` fails.
    fn if_cd_fails(&mut self, file: &FileUse) {
        let Some(text) = file.path.literal().filter(|text| !text.starts_with('/')) else { return };
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
        let expansion = match self.expand(absolute) {
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
            self.tree(&found);
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
        if self.policy.domains.refuses(&fact).is_some() {
            self.facts.hosts.push(fact);
        }
    }

    fn mentioned_path(&mut self, text: &str, span: Span) {
        let mut fact = self.path(&self.absolute(&self.call.cwd, text), Access::Read, Some(span));
        fact.kind = PathKind::Mentioned;
        let home = self.setting.home.as_deref();
        let deny = &self.policy.files.deny;
        if fact.spellings().iter().any(|path| last_word_split(deny, path, home).is_some()) || self.is_labelled(&fact) {
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

/// Whether a command is git's, and writes settings or repositories.
fn is_git(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let makes = ["config", "clone", "init", "worktree", "submodule", "remote"];
    words.first().is_some_and(|name| name.rsplit('/').next() == Some("git"))
        && words.iter().any(|word| makes.contains(&word.as_str()))
}

/// Whether a command makes folders of what it names.
fn makes_folders(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let given = |option: &str| words.iter().any(|word| word == option);
    match words.first().and_then(|name| name.rsplit('/').next()) {
        Some("mkdir") => true,
        Some("install") => given("-d") || given("--directory"),
        _ => false,
    }
}

/// Whether a command does nothing but remove what it names.
fn removes(command: &Command) -> bool {
    let name = command.words.first().and_then(Word::literal);
    name.is_some_and(|name| matches!(name.rsplit('/').next(), Some("rm" | "rimraf")))
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
