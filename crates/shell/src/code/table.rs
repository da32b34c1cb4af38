//! What each language's harmless part names: `data/languages/*.toml`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::programs::entries::words::{Effect, List};

include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// Words with what a call of them does.
type Words = HashMap<&'static str, Effect>;

static LISTED: LazyLock<HashMap<(&'static str, List), Words>> =
    LazyLock::new(|| table(LISTS.iter().map(|(language, list, effect, words)| ((*language, *list), *effect, *words))));
static MODULES: LazyLock<HashMap<(&'static str, &'static str), Words>> =
    LazyLock::new(|| table(MEMBERS.iter().map(|(language, of, effect, words)| ((*language, *of), *effect, *words))));

fn table<K: Eq + std::hash::Hash>(rows: impl Iterator<Item = (K, Effect, &'static str)>) -> HashMap<K, Words> {
    let mut table: HashMap<K, Words> = HashMap::new();
    for (key, effect, words) in rows {
        table.entry(key).or_default().extend(words.split(' ').map(|word| (word, effect)));
    }
    table
}

/// What a word of a list does; `None` where it is not in the list.
pub fn role(language: &'static str, list: List, word: &str) -> Option<Effect> {
    LISTED.get(&(language, list))?.get(word).copied()
}

/// Whether a word is in a list.
pub fn has(language: &'static str, list: List, word: &str) -> bool {
    role(language, list, word).is_some()
}

/// Whether there is a list for a module, an object or a class.
pub fn is_module(language: &'static str, name: &str) -> bool {
    MODULES.contains_key(&(language, name))
}

/// What a member of a module, an object or a class does.
pub fn member(language: &'static str, module: &str, word: &str) -> Option<Effect> {
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
}
