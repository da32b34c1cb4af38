//! Import cycles inside a crate: files that can only be understood together.
//!
//! Owns the reading of which file uses a name of which other one, followed through re-exports to where the name is defined. A
//! module and its own children may use each other; tests do not count. Refuses to guess: a path it cannot follow to a file of the
//! crate is nobody's arrow, so derived names and names that only a macro makes are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Names from the crate's root down.
type Names = Vec<String>;

/// Most re-exports on the way to one definition.
const MOST_HOPS: u8 = 16;

/// A file, as others see it and as it sees others.
#[derive(Default)]
struct Module {
    defines: BTreeSet<String>,
    /// What `use` binds here, and to which path as written.
    binds: BTreeMap<String, Names>,
    /// Paths of which everything is bound here.
    globs: Vec<Names>,
    /// Paths as written.
    mentions: BTreeSet<Names>,
}

type Modules = BTreeMap<Names, Module>;
type Arrows = BTreeMap<Names, BTreeSet<Names>>;

/// A line for each cycle of the crate in `folder`.
pub fn of(krate: &str, folder: &Path) -> Result<Vec<String>> {
    let mut modules = Modules::new();
    collect(folder, &Names::new(), &mut modules)?;
    let told = |cycle: Vec<Names>| {
        let files: Vec<String> = cycle.iter().map(|names| names.join("::")).collect();
        format!("`{krate}` has an import cycle of {} files: {}", files.len(), files.join(", "))
    };
    Ok(cycles(&arrows(&modules)).into_iter().map(told).collect())
}

fn collect(folder: &Path, at: &Names, modules: &mut Modules) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let inside = || at.iter().cloned().chain([name.clone()]).collect::<Names>();
        if path.is_dir() {
            collect(&path, &inside(), modules)?;
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests" {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
            let here = if matches!(name.as_str(), "lib" | "main" | "mod") { at.clone() } else { inside() };
            modules.entry(here).or_default().visit_file(&file);
        }
    }
    Ok(())
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let says = |attribute: &syn::Attribute| attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test");
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("test") || attribute.path().is_ident("cfg") && says(attribute))
}

fn name_of(item: &syn::Item) -> Option<&syn::Ident> {
    match item {
        syn::Item::Const(item) => Some(&item.ident),
        syn::Item::Enum(item) => Some(&item.ident),
        syn::Item::Fn(item) => Some(&item.sig.ident),
        syn::Item::Static(item) => Some(&item.ident),
        syn::Item::Struct(item) => Some(&item.ident),
        syn::Item::Trait(item) => Some(&item.ident),
        syn::Item::Type(item) => Some(&item.ident),
        syn::Item::Union(item) => Some(&item.ident),
        syn::Item::Macro(item) => item.ident.as_ref(),
        _ => None,
    }
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

impl<'a> Visit<'a> for Module {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !is_test(attributes_of(item)) {
            self.defines.extend(name_of(item).map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.bind(&item.tree, &Names::new());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.mentions.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.words(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

impl Module {
    fn bind(&mut self, tree: &syn::UseTree, front: &Names) {
        let with = |ident: &syn::Ident| front.iter().cloned().chain([ident.to_string()]).collect::<Names>();
        let mut add = |ident: &syn::Ident, name: &syn::Ident| {
            let path = if ident == "self" { front.clone() } else { with(ident) };
            let name = if name == "self" { front.last().cloned().unwrap_or_default() } else { name.to_string() };
            self.mentions.insert(path.clone());
            self.binds.insert(name, path);
        };
        match tree {
            syn::UseTree::Path(path) => self.bind(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => add(&name.ident, &name.ident),
            syn::UseTree::Rename(rename) => add(&rename.ident, &rename.rename),
            syn::UseTree::Glob(_) => self.globs.push(front.clone()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.bind(tree, front)),
        }
    }

    /// Paths inside a macro's input: names with `::` between them.
    fn words(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Names::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(word) if colons == 2 => path.push(word.to_string()),
                TokenTree::Ident(word) => {
                    self.mentions.insert(std::mem::replace(&mut path, vec![word.to_string()]));
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && colons < 2 => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.words(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => drop(self.mentions.insert(std::mem::take(&mut path))),
            }
            colons = 0;
        }
        self.mentions.insert(path);
    }
}

fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for (here, module) in modules {
        let used = module.mentions.iter().filter_map(|path| follow(modules, here, path, MOST_HOPS));
        let others = used.filter(|there| !there.starts_with(here) && !here.starts_with(there.as_slice()));
        arrows.insert(here.clone(), others.collect());
    }
    arrows
}

/// The file that defines what a path, as written in `here`, leads to.
fn follow(modules: &Modules, here: &Names, path: &[String], hops: u8) -> Option<Names> {
    let hops = hops.checked_sub(1)?;
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => walk(modules, Names::new(), rest, hops),
        "self" => walk(modules, here.clone(), rest, hops),
        "super" => walk(modules, here.split_last()?.1.to_vec(), rest, hops),
        _ => walk(modules, here.clone(), path, hops),
    }
}

fn walk(modules: &Modules, mut at: Names, path: &[String], hops: u8) -> Option<Names> {
    let mut left = path;
    while let Some((name, rest)) = left.split_first() {
        let module = modules.get(&at)?;
        if name == "super" {
            at.pop()?;
        } else if !rest.is_empty() && modules.contains_key(&child_of(&at, name)) {
            // A function or a value of the same name does not stand in a module's way.
            at.push(name.clone());
        } else if let Some(bound) = module.binds.get(name) {
            // The name that a path binds is not itself the way there.
            let whole: Names = bound.iter().chain(rest).cloned().collect();
            return if bound.first() == Some(name) {
                child(modules, &at, &whole, hops)
            } else {
                follow(modules, &at, &whole, hops)
            };
        } else if module.defines.contains(name) {
            return Some(at);
        } else if modules.contains_key(&child_of(&at, name)) {
            at.push(name.clone());
        } else {
            return module.globs.iter().find_map(|glob| {
                let whole: Names = glob.iter().chain(left).cloned().collect();
                follow(modules, &at, &whole, hops)
            });
        }
        left = rest;
    }
    None
}

/// `use a::b` in the file of module `a`'s parent: the first name is a child's.
fn child(modules: &Modules, at: &Names, whole: &[String], hops: u8) -> Option<Names> {
    let (first, rest) = whole.split_first()?;
    let inside = child_of(at, first);
    modules.contains_key(&inside).then(|| walk(modules, inside, rest, hops.checked_sub(1)?))?
}

fn child_of(at: &Names, name: &str) -> Names {
    at.iter().cloned().chain([name.to_owned()]).collect()
}

/// The largest groups of files each of which leads to every other.
fn cycles(arrows: &Arrows) -> Vec<Vec<Names>> {
    let reached: BTreeMap<&Names, BTreeSet<&Names>> = arrows.keys().map(|from| (from, reached(arrows, from))).collect();
    let leads = |from: &Names, to: &Names| reached.get(from).is_some_and(|all| all.contains(to));
    let mut cycles: BTreeSet<Vec<Names>> = BTreeSet::new();
    for from in arrows.keys() {
        let cycle: Vec<Names> = arrows.keys().filter(|to| leads(from, to) && leads(to, from)).cloned().collect();
        if cycle.len() > 1 {
            cycles.insert(cycle);
        }
    }
    cycles.into_iter().collect()
}

fn reached<'a>(arrows: &'a Arrows, from: &'a Names) -> BTreeSet<&'a Names> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for next in arrows.get(at).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<Names>> {
        let mut modules = Modules::new();
        for (name, text) in files {
            let names = name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            let module: &mut Module = modules.entry(names).or_default();
            module.visit_file(&syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}")));
        }
        cycles(&arrows(&modules))
    }

    #[test]
    fn cycles_are_found_through_every_kind_of_path() {
        let back = "pub struct B; fn g() { super::a::f() }";
        for there in [
            "use crate::b::B; pub fn f() {}",
            "use super::b; pub fn f() { b::B; }",
            "pub fn f(_: crate::b::B) {}",
            "use crate::B; pub fn f() {}",
            "use crate::b::*; pub fn f() -> B { todo!() }",
            "pub fn f() { println!(\"{}\", crate::b::B); }",
            "use crate::{b::{B as C}}; pub fn f() {}",
        ] {
            let files = [("", "mod a; mod b; pub use b::B;"), ("a", there), ("b", back)];
            assert_eq!(found(&files), [[["a".to_owned()], ["b".to_owned()]]], "{there}");
        }
    }

    #[test]
    fn a_function_does_not_hide_the_module_of_its_name() {
        let files = [
            ("", "mod a; mod b; pub use a::inner::b;"),
            ("a", "pub mod inner; pub mod other;"),
            ("a::inner", "pub fn b() {}"),
            ("a::other", "use crate::b::B; pub fn f() {}"),
            ("b", "pub struct B; fn g() { crate::a::other::f() }"),
        ];
        assert_eq!(found(&files), [[vec!["a".to_owned(), "other".to_owned()], vec!["b".to_owned()]]]);
    }

    #[test]
    fn what_runs_down_is_none() {
        let tests = "pub fn f() {} #[cfg(test)] mod tests { use crate::b::B; }";
        for (a, b) in [
            ("use crate::b::B; pub fn f() {}", "pub struct B;"),
            ("pub fn f() { other::b(); std::mem::take(&mut b) }", "use super::a::f; pub struct B;"),
            (tests, "use crate::a::f; pub struct B;"),
        ] {
            assert_eq!(found(&[("", "mod a; mod b;"), ("a", a), ("b", b)]), Vec::<Vec<Names>>::new(), "{a} {b}");
        }
        let child = [("a", "mod b; pub struct A; use b::B;"), ("a::b", "use super::A; pub struct B;"), ("", "mod a;")];
        assert_eq!(found(&child), Vec::<Vec<Names>>::new());
    }
}
