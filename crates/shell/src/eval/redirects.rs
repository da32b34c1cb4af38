//! Redirections: the files and hosts that they open, and what they make of standard input.

use crate::action::{Access, NetTarget};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::parser::syntax::{RawPart, Redirect, RedirectKind};
use crate::settings;
use crate::word::{Part, Word};

impl Eval<'_> {
    /// Redirections; `Some` when they say what standard input is.
    pub(crate) fn redirects(&mut self, redirects: &[Redirect]) -> Option<Input> {
        let mut input = None;
        for redirect in redirects {
            if redirect.kind == RedirectKind::Text {
                let text = self.expand_text(&redirect.word.parts);
                let only = text.first().filter(|_| text.len() == 1).cloned();
                // Another descriptor's text is not what standard input gives.
                if !redirect.other {
                    input = Some(only.map_or(Input::Unknown, Input::of));
                }
                continue;
            }
            if let (RedirectKind::Read, [RawPart::Process(node)]) = (redirect.kind, redirect.word.parts.as_slice()) {
                let text = self.output_from(node, &Input::None);
                if !redirect.other {
                    input = Some(text.map_or(Input::Unknown, Input::of));
                }
                self.isolated(node);
                continue;
            }
            for word in self.expand(&redirect.word).into_iter().flatten() {
                let access = match redirect.kind {
                    RedirectKind::Read => Access::Read,
                    RedirectKind::Duplicate => {
                        let text = word.literal().unwrap_or_default();
                        if text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()) {
                            // What another descriptor gives is not known here.
                            if redirect.input && !redirect.other && !matches!(text.as_str(), "0" | "-") {
                                input = Some(Input::Unknown);
                            }
                            self.duplicated(redirect.descriptor, &text);
                            continue;
                        }
                        Access::Write
                    }
                    RedirectKind::Write | RedirectKind::ReadWrite | RedirectKind::Text => Access::Write,
                };
                if access == Access::Read && !redirect.other {
                    let text = self.text_known(&word).or_else(|| self.path_list(&word));
                    input = Some(text.map_or(Input::Unknown, Input::Text));
                }
                // What is written is known once the command was walked.
                self.written.keeping = redirect.kind == RedirectKind::Write;
                if let Some(host) = word.literal().and_then(|text| socket(&text)) {
                    let target = NetTarget::Host(Word { parts: vec![Part::Text(host)], span: word.span });
                    self.net(target, word.span);
                } else {
                    self.opened(redirect.descriptor, &word);
                    if redirect.kind == RedirectKind::ReadWrite {
                        self.file(word.clone(), Access::Read, false);
                    }
                    // What is opened may be a folder, and everything in it is reached by the descriptor.
                    let known = access == Access::Read && word.literal().is_some();
                    self.file(word, access, known);
                }
            }
        }
        input
    }

    /// Hosts in a settings file that a redirection writes.
    pub(crate) fn written_settings(&mut self, redirects: &[Redirect], text: impl FnOnce(&mut Self) -> Option<String>) {
        let plain = |redirect: &&Redirect| {
            matches!(redirect.kind, RedirectKind::Write | RedirectKind::ReadWrite | RedirectKind::Duplicate)
                && !matches!(redirect.word.parts.as_slice(), [RawPart::Plain(path)] if !settings::is_settings(path))
        };
        let words: Vec<Word> =
            redirects.iter().filter(plain).flat_map(|redirect| self.expand(&redirect.word)).flatten().collect();
        let found: Vec<&Word> =
            words.iter().filter(|word| word.literal().is_some_and(|path| settings::is_settings(&path))).collect();
        if !found.is_empty() {
            let text = text(self);
            found.into_iter().for_each(|word| self.settings_file(word, text.as_deref()));
        }
    }

    /// Puts on record the hosts that a file written by the line makes other programs contact. `text`: what is written, where
    /// that is known.
    pub(crate) fn settings_file(&mut self, path: &Word, text: Option<&str>) {
        let Some(name) = path.literal().filter(|_| self.remote == 0) else { return };
        settings::written(&name, text, path.span).into_iter().for_each(|target| self.net(target, path.span));
    }
}

/// Whether a redirection may find no file.
pub fn may_fail(redirect: &Redirect) -> bool {
    let null = matches!(redirect.word.parts.as_slice(), [RawPart::Plain(path)] if path == "/dev/null");
    !matches!(redirect.kind, RedirectKind::Text | RedirectKind::Duplicate) && !null
}

/// The host of bash's `/dev/tcp/host/port`.
fn socket(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_owned)
}
