//! Files whose text nothing in the line changes: what is in them now is what a command will read there.
//!
//! Only where every command so far only reads and ends: what runs a program, writes, fetches or waits leaves time and
//! ways to put something else there. Such a text is taken for a list of names where each line is the path of a file.

use writ_core::Span;

use crate::action::Access;
use crate::eval::Eval;
use crate::word::{Dir, Word};

impl Eval<'_> {
    /// The text of a file that is a list of paths, where nothing in the line so far may change it.
    pub(crate) fn path_list(&mut self, file: &Word) -> Option<String> {
        let path = file.literal().filter(|_| !file.is_glob() && self.only_reads(None))?;
        let [Dir::Start(dir)] = self.dirs.as_slice() else { return None };
        let folder = crate::eval::files::dirs::below(&self.start_dir()?, dir);
        let place = crate::eval::files::dirs::below(&folder, &path);
        let text = self.sources.names(&place, &folder)?;
        self.lists += 1;
        Some(text)
    }

    /// Whether every command so far, or before this one, only reads.
    pub(crate) fn only_reads(&self, before: Option<Span>) -> bool {
        let earlier = |span: Span| before.is_none_or(|before| span.end <= before.start);
        let device = |path: String| matches!(path.as_str(), "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty");
        let files = self.out.files.iter().filter(|file| file.access == Access::Write && earlier(file.span));
        self.remote == 0
            && self.out.unresolved.is_empty()
            && self.functions.is_empty()
            && self.aliases.is_empty()
            && self.out.commands.iter().filter(|command| earlier(command.span)).all(self.programs.is_read_only)
            && files.map(|file| file.path.place()).all(|path| path.is_some_and(device))
    }
}
