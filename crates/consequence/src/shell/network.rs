//! What a line takes from the network to run, and what it gives away.

use std::collections::HashSet;

use writ_core::Span;
use writ_shell::{Access, Analysis, FileUse, UnresolvedKind, Word};

use super::Findings;
use crate::heuristics;
use crate::report::{Origin, Tier};

impl Findings<'_> {
    /// Code from the network into an interpreter, and secrets out to it.
    pub(super) fn network(&mut self, analysis: &Analysis) {
        let fetches = !analysis.nets.is_empty();
        for open in &analysis.unresolved {
            let runs = matches!(open.kind, UnresolvedKind::Script | UnresolvedKind::Code);
            let piped = open.what.starts_with('|') || open.kind == UnresolvedKind::Script;
            if runs && fetches && piped {
                let why = "code from the network runs unseen";
                self.add(Tier::NeedsReview, "run", "code", why, open.span, None, Origin::Rules);
            }
        }
        for command in analysis.commands.iter().filter(|command| heuristics::runs_code(command)) {
            let within = |word: &Word, span: Span| word.span.start <= span.start && span.end <= word.span.end;
            let fed = |word: &&Word| word.literal().is_none() && analysis.nets.iter().any(|net| within(word, net.span));
            let piped =
                |word: &Word| word.literal().is_some_and(|word| word.starts_with("/dev/fd/") || word == "/dev/stdin");
            if command.words.iter().skip(1).any(|word| fed(&word) || fetches && piped(word)) {
                let why = "code from the network runs unseen";
                self.add(Tier::NeedsReview, "run", "code", why, command.span, None, Origin::Rules);
            }
        }
        let script = analysis.unresolved.iter().find(|open| open.kind == UnresolvedKind::Script);
        if let Some(open) = script.filter(|_| analysis.commands.iter().any(heuristics::transforms_bytes)) {
            let why = "code that cannot be read beforehand runs";
            self.add(Tier::NeedsReview, "run", "code", why, open.span, None, Origin::Rules);
        }
        if self.line.contains("/dev/tcp/") && analysis.commands.iter().any(heuristics::is_interactive_shell) {
            let span = Span { start: 0, end: self.line.len() };
            let why = "a shell is handed to another machine";
            self.add(Tier::NeedsReview, "disclose", "machine", why, span, None, Origin::Rules);
        }
        if analysis.commands.iter().any(heuristics::lists_environment)
            && analysis.commands.iter().any(heuristics::sends_input)
        {
            let span = Span { start: 0, end: self.line.len() };
            let why = "the environment leaves the machine, with every token in it";
            self.add(Tier::Unrecoverable, "disclose", "secret", why, span, None, Origin::Rules);
        }
        let printed = analysis.commands.iter().find_map(|command| heuristics::prints_secret(command, self.line));
        if let Some((span, what)) = printed.filter(|_| analysis.commands.iter().any(heuristics::sends_input)) {
            let why = format!("{what} leaves the machine; nothing takes it back");
            self.add(Tier::Unrecoverable, "disclose", "secret", &why, span, None, Origin::Rules);
        }
        let keys: HashSet<(usize, usize)> = analysis.commands.iter().flat_map(heuristics::own_keys).collect();
        let secret = |file: &&FileUse| {
            let name = file.path.literal().unwrap_or_default();
            file.access == Access::Read
                && heuristics::is_secret(&name)
                && !keys.contains(&(file.span.start, file.span.end))
        };
        let sends = fetches || analysis.commands.iter().any(heuristics::sends_input);
        if sends && let Some(file) = analysis.files.iter().find(secret) {
            let (span, name) = (file.span, file.path.literal());
            self.add(
                Tier::Unrecoverable,
                "disclose",
                "secret",
                "a secret leaves the machine; nothing takes it back",
                span,
                name,
                Origin::Rules,
            );
        }
    }
}
