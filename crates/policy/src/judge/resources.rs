//! What `grants` says of secrets, APIs and storage, against facts.

use writ_core::{Subject, Verdict};

use super::{Judge, matched};
use crate::facts::ResourceFact;
use crate::grants::Kind;

impl Judge<'_> {
    pub(super) fn resource(&mut self, fact: &ResourceFact) {
        let subject = if fact.grant == Kind::Secrets { Subject::Path } else { Subject::Host };
        let place = || matched(subject, &fact.name, fact.span);
        for (pointer, sure) in &fact.hits {
            let instead = format!("remove the rule at {pointer}, or leave it out");
            if *sure {
                self.say(Verdict::Deny, pointer, place(), format!("`{}` must not be used", fact.name), instead);
            } else {
                let message = format!("`{}` may be used, or something that must not be", fact.name);
                self.say(Verdict::Ask, pointer, place(), message, instead);
            }
        }
        if !fact.refused {
            return;
        }
        let list = format!("/grants/{}/allow", fact.grant.member());
        let instead = format!("add a pattern for it to {list}");
        if fact.perhaps {
            let message = format!("what is used of `{}` is not known, and may not be granted", fact.name);
            self.say(Verdict::Ask, &list, place(), message, instead);
        } else {
            self.say(Verdict::Deny, &list, place(), format!("`{}` is not granted", fact.name), instead);
        }
    }
}
