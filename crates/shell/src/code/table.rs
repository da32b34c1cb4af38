//! What each language's harmless part names: `data/code.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

const DATA: &str = include_str!("../../data/code.txt");

/// Words with what a call of them does; empty for nothing.
type Words = HashMap<&'static str, &'static str>;

type Table = HashMap<(&'static str, &'static str), Words>;

static TABLE: LazyLock<Table> = LazyLock::new(|| table(|kind| (!kind.contains(' ')).then_some(kind)));
static MODULES: LazyLock<Table> = LazyLock::new(|| table(|kind| kind.strip_prefix("module ")));

fn table(own: impl Fn(&'static str) -> Option<&'static str>) -> Table {
    let mut table = Table::new();
    for line in DATA.lines().filter(|line| !line.starts_with('#')) {
        let Some((head, words)) = line.split_once(" | ") else { continue };
        let Some((language, kind)) = head.split_once(' ').and_then(|(language, kind)| Some((language, own(kind)?)))
        else {
            continue;
        };
        let word = |word: &'static str| {
            word.rsplit_once(':').filter(|(name, _)| !name.is_empty() && !name.ends_with(':')).unwrap_or((word, ""))
        };
        table.entry((language, kind)).or_default().extend(words.split(' ').map(word));
    }
    table
}

/// The role of a word of this kind; `None` where it is not in the table.
pub fn role(language: &'static str, kind: &str, word: &str) -> Option<&'static str> {
    TABLE.get(&(language, kind))?.get(word).copied()
}

/// Whether it is a word of this kind.
pub fn has(language: &'static str, kind: &str, word: &str) -> bool {
    role(language, kind, word).is_some()
}

/// Whether there is a list for a module, an object or a class.
pub fn is_module(language: &'static str, name: &str) -> bool {
    MODULES.contains_key(&(language, name))
}

/// The role of a member of a module, an object or a class.
pub fn member(language: &'static str, module: &str, word: &str) -> Option<&'static str> {
    MODULES.get(&(language, module))?.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has a row for each language, made from the data.
    #[test]
    fn the_page_names_every_module() {
        let page = include_str!("../../../../spec/shell.md");
        for (language, module) in MODULES.keys().filter(|(language, _)| *language != "php") {
            let first = module.split(['.', ':']).next().unwrap_or_default();
            let named = page.contains(&format!("`{first}`")) || matches!(first, "modules" | "__future__");
            assert!(named, "{language} {module}");
        }
    }

    #[test]
    fn every_line_names_a_language_and_a_kind() {
        for line in DATA.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (head, words) = line.split_once(" | ").unwrap_or_default();
            let mut head = head.split(' ');
            let known = ["python", "javascript", "perl", "ruby", "php", "lua", "r"];
            assert!(head.next().is_some_and(|language| known.contains(&language)), "{line}");
            assert!(head.next().is_some() && !words.is_empty(), "{line}");
        }
    }
}
