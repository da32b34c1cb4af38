//! Who the agent is, against who it has to be (R21).

use writ_core::{Reason, Subject, Verdict};

use super::{Judge, matched};
use crate::policy::Policy;

/// Tools that a policy requires and another one that is asked too never lets be used.
pub fn missing_tools<'a>(policy: &Policy, others: impl Iterator<Item = &'a Policy> + Clone) -> Vec<Reason> {
    let denies = |tool: &str| {
        let name = tool.split(':').next().unwrap_or(tool).to_owned();
        others.clone().any(|other| other.never_allows(&name))
    };
    let missing = policy.identity().required.iter().filter(|(_, tool)| denies(tool));
    missing
        .map(|(pointer, tool)| Reason {
            verdict: Verdict::Deny,
            rule: pointer.clone(),
            matched: matched(Subject::Tool, tool, None),
            message: format!("the agent must have `{tool}`, and another of its policies never lets it use that"),
            instead: format!("policies that allow `{tool}`, or do not require it"),
        })
        .collect()
}

impl Judge<'_> {
    pub(super) fn identity(&mut self) {
        let rules = self.policy.identity();
        for (pointer, tool) in &rules.required {
            let name = tool.split(':').next().unwrap_or(tool);
            if self.policy.never_allows(name) {
                let message = format!("the agent must have `{tool}`, and its policy never lets it use that");
                let instead = format!("a policy that allows `{tool}`, or does not require it");
                self.say(Verdict::Deny, pointer, matched(Subject::Tool, tool, None), message, instead);
            }
        }
        let Some(known) = &self.facts.identity else { return };
        let model = known.model.as_deref().unwrap_or_default();
        let place = |text: &str| matched(Subject::Policy, text, None);
        match rules.allows_model(known) {
            Some(true) => {}
            Some(false) => {
                let message = format!("its model is `{model}`, which may not run under this policy");
                let instead = "one of the models that `identity.allowedModels` names".to_owned();
                self.say(Verdict::Deny, "/identity/allowedModels", place(model), message, instead);
            }
            None if rules.observed => {
                let message =
                    "its model is only reported by its transcript, and the policy wants it observed".to_owned();
                let instead = "`\"standing\": \"reported\"` in `identity`".to_owned();
                self.say(Verdict::Deny, "/identity/allowedModels", place(model), message, instead);
            }
            None => {
                let message = "which model makes this call is not known".to_owned();
                let instead = "a client whose transcript tells its model".to_owned();
                self.say(Verdict::Ask, "/identity/allowedModels", place(model), message, instead);
            }
        }
        if !rules.allows_environment(known) {
            let names: Vec<&str> = known.observed.iter().chain(&known.reported).map(String::as_str).collect();
            let names = names.join(", ");
            let (message, instead) = if rules.is_only_reported(known) {
                let message = format!(
                    "it runs in {names}; where the policy lets it run is only reported, and it wants that observed"
                );
                (message, "`\"standing\": \"reported\"` in `identity`, or an agent that is not root".to_owned())
            } else {
                let message = format!("it runs in {names}, where this policy lets no agent run");
                (
                    message,
                    "an environment that `identity.allowedEnvironments` names: `writ identity --explain`".to_owned(),
                )
            };
            self.say(Verdict::Deny, "/identity/allowedEnvironments", place(""), message, instead);
        }
    }
}
