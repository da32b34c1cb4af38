//! Listings that the line prints, each on record once, and what is left of one that a search narrows.

use crate::eval::Eval;
use crate::listing::{Listing, Test};
use crate::text::Text;
use crate::word::{Dir, Part, Source};

/// Most listings of a line.
const MOST: usize = 256;

impl Eval<'_> {
    /// Puts a listing on record; what stands for each of its names.
    pub(crate) fn listing(&mut self, mut listing: Listing) -> Part {
        if let [Part::Unknown(Source::Listed(at))] = listing.folder.parts.as_slice()
            && let Some(outer) = self.out.listings.get(usize::from(*at))
        {
            let outer = outer.clone();
            let rough = outer.as_globs().0.into_iter().next();
            (listing.folder, listing.dirs) = (rough.unwrap_or(outer.folder), outer.dirs);
        }
        for part in &mut listing.folder.parts {
            match part {
                Part::Unknown(Source::Number | Source::Fresh | Source::Name) => *part = Part::Glob("*".to_owned()),
                Part::Unknown(source) if source.is_made() => return Part::Unknown(Source::Any),
                Part::Unknown(_) => return Part::Unknown(Source::Outside),
                Part::Text(_) | Part::Glob(_) => {}
            }
        }
        if listing.dirs.contains(&Dir::Unknown) && !listing.folder.literal().is_some_and(|text| text.starts_with('/')) {
            return Part::Unknown(Source::Any);
        }
        let known = self.out.listings.iter().position(|own| *own == listing);
        let at = known.unwrap_or(self.out.listings.len());
        let Some(index) = u16::try_from(at).ok().filter(|_| at < MOST) else {
            self.limit("too many listings");
            return Part::Unknown(Source::Any);
        };
        if known.is_none() {
            self.out.listings.push(listing);
        }
        Part::Unknown(Source::Listed(index))
    }

    /// Some of these lines: those whose names a search's pattern asks for, or for a reason that is not known.
    pub(crate) fn narrowed(&mut self, lines: &Text, asked: Option<&Test>) -> Text {
        let mut out = Text::new();
        for (at, part) in lines.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| lines.get(at));
            let starts = before.is_none_or(|part| matches!(part, Part::Text(text) if text.ends_with('\n')));
            let behind = lines.get(at + 1);
            let ends = behind.is_none_or(|part| matches!(part, Part::Text(text) if text.starts_with('\n')));
            // What else stands in a line may be what was asked for.
            let test = asked.filter(|_| starts && ends).cloned().unwrap_or(Test::Maybe);
            out.push(match part {
                Part::Unknown(Source::Listed(index)) => match self.out.listings.get(usize::from(*index)).cloned() {
                    Some(listing) => self.listing(Listing { test: test.and(listing.test.clone()), ..listing }),
                    None => Part::Unknown(Source::Any),
                },
                other => other.clone(),
            });
        }
        out
    }
}
