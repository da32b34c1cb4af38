//! The entries of programs: what is made from them is current, and they say what the analysis takes them for.

use writ_shell::{page, program, programs};

#[test]
fn the_page_is_made_from_the_entries() {
    let kept = include_str!("../../../spec/programs.md");
    assert!(kept == page(), "run `writ shell programs --page > spec/programs.md`: the page is out of date");
}

#[test]
fn every_program_is_found_by_each_of_its_names() {
    for entry in programs() {
        for name in entry.names() {
            assert_eq!(program(name).map(|found| found.names()), Some(entry.names()), "{name}");
        }
    }
    assert!(program("git add").is_some() && program("git-add").is_none() && program("").is_none());
}

#[test]
fn lines_for_people_stay_within_their_columns() {
    for entry in programs() {
        for line in entry.to_text().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
