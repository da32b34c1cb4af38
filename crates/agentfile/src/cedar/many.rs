//! Many policies at once: parsed together, and in two threads where they are many.
//!
//! Invariant: what comes out is what each text by itself would have come to.

use std::panic::resume_unwind;
use std::thread;

use cedar_policy::{Policy, PolicyId, PolicySet};

use crate::diagnostic::Place;

/// How many policies are worth a second thread.
const APART: usize = 32;
/// What the second thread has of stack, as the first of a process: Cedar reads as deep as there is room.
const STACK: usize = 8 << 20;

/// A policy as it is written.
pub(super) struct Written {
    pub text: String,
    pub place: Place,
    /// What it was lowered from.
    pub directive: Option<String>,
}

/// The policies where nothing is wrong with them, parsed together: for each text by itself the parser would be set up anew. `None` where
/// one of them has to be told what is wrong, or the texts are not one policy each.
pub(super) fn together(written: &[Written]) -> Option<Vec<Policy>> {
    let texts: Vec<&str> = written.iter().map(|one| one.text.as_str()).collect();
    let parsed: Option<Vec<Vec<Policy>>> = halves(&texts, parse).into_iter().collect();
    Some(parsed?.concat())
}

fn parse(texts: &[&str]) -> Option<Vec<Policy>> {
    let set: PolicySet = texts.join("\n").parse().ok()?;
    let one = |(number, text): (usize, &&str)| {
        let policy = set.policy(&PolicyId::new(format!("policy{number}")))?;
        (policy.to_cedar()? == text.trim()).then(|| policy.clone())
    };
    let policies: Option<Vec<Policy>> = texts.iter().enumerate().map(one).collect();
    policies.filter(|policies| policies.len() == set.num_of_policies() && set.num_of_templates() == 0)
}

/// What `each` makes of the first half and, in a thread of its own meanwhile, of the second; of fewer than [`APART`] at once.
pub(super) fn halves<T: Sync, R: Send>(all: &[T], each: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    if all.len() < APART {
        return vec![each(all)];
    }
    let (front, back) = all.split_at(all.len() / 2);
    thread::scope(|scope| {
        let meanwhile = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || each(back));
        let first = each(front);
        let second = match meanwhile {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => each(back),
        };
        vec![first, second]
    })
}

#[cfg(test)]
mod tests {
    use cedar_policy::Effect;

    use super::*;

    #[test]
    fn policies_are_parsed_at_once_where_each_text_is_one() {
        let ids = |texts: &[&str]| {
            let written = |text: &&str| Written { text: (*text).to_owned(), place: Place::START, directive: None };
            let policies = together(&texts.iter().map(written).collect::<Vec<_>>())?;
            Some(policies.iter().map(|policy| policy.effect() == Effect::Permit).collect::<Vec<_>>())
        };
        let (permit, forbid) = ("permit(principal, action, resource);", "forbid(principal, action, resource);");
        assert_eq!(ids(&[]), Some(Vec::new()));
        let many: Vec<&str> = [permit, forbid, forbid].into_iter().cycle().take(APART + 3).collect();
        assert_eq!(ids(&many), Some(many.iter().map(|text| *text == permit).collect()));
        let noted = format!("@id(\"a\")\n{permit}");
        assert_eq!(ids(&[&noted, forbid]), Some(vec![true, false]));
        // As many policies as texts, and yet not one each.
        let both = format!("{permit} {forbid}");
        for texts in [&[both.as_str(), "// nothing"][..], &["// nothing", &both], &[permit, "forbid(principal"]] {
            assert_eq!(ids(texts), None, "{texts:?}");
        }
        assert_eq!(ids(&["permit(principal == ?principal, action, resource);"]), None);
    }
}
