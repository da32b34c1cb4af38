//! What a client itself says that a conversation used, beside what its messages tell.
//!
//! Owns what no message tells of: summaries, titles and the like, which a client asks the model for by itself and sums up when it
//! ends. Invariant: what is said after such a sum takes nothing from what the sum had beyond the messages before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writ_core::{Digest, Timestamp};

use crate::usage::{Tokens, plain_model};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub(super) files: BTreeMap<String, Position>,
    /// What the client itself said last that was used.
    stated: Models,
    /// What messages told of until then.
    spoken: Models,
    /// What they told of after that.
    since: Models,
    /// When the first of those was told.
    goes_on: Option<Timestamp>,
    /// The most that was stated before, and no message had told of until then.
    unspoken: Models,
}

/// Where reading goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) end: u64,
    /// Digest of the last bytes before it.
    pub(super) tail: Digest,
}

/// What was used, by model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Models(pub(super) BTreeMap<String, Tokens>);

/// What a reading finds in the main transcript of a conversation.
#[derive(Default)]
pub(super) struct News {
    /// What the client stated, each time with how many new messages stand in front of it.
    pub(super) totals: Vec<(Models, usize)>,
    /// What new messages of the main transcript tell of, in their order.
    pub(super) main: Vec<Said>,
    /// What those of subagents do.
    pub(super) others: Vec<Said>,
}

/// What a message tells of that was not counted yet.
pub(super) struct Said {
    pub(super) model: String,
    pub(super) tokens: Tokens,
    pub(super) at: Option<Timestamp>,
}

impl Said {
    /// Whether it was told after a total behind which the main agent's next message was told at `next`. Without moments nobody knows: it
    /// was, where that message had been `read` before this one came.
    fn is_after(&self, next: Option<Timestamp>, read: bool) -> bool {
        match (self.at, next) {
            (Some(at), Some(next)) => at >= next,
            _ => read,
        }
    }
}

impl Models {
    pub(super) fn add(&mut self, model: &str, tokens: Tokens) {
        if tokens.is_nothing() {
            return;
        }
        let sum = self.0.entry(plain_model(model).to_owned()).or_default();
        *sum = sum.plus(tokens);
    }

    fn take<'a>(&mut self, said: impl IntoIterator<Item = &'a Said>) {
        said.into_iter().for_each(|said| self.add(&said.model, said.tokens));
    }

    #[must_use]
    pub(super) fn plus(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|(model, tokens)| self.add(model, *tokens));
        self
    }

    #[must_use]
    fn beyond(mut self, other: &Self) -> Self {
        for (model, tokens) in &other.0 {
            if let Some(own) = self.0.get_mut(model) {
                *own = own.beyond(*tokens);
            }
        }
        self.0.retain(|_, tokens| !tokens.is_nothing());
        self
    }

    #[must_use]
    fn most(mut self, other: &Self) -> Self {
        for (model, tokens) in &other.0 {
            let own = self.0.entry(model.clone()).or_default();
            *own = own.most(*tokens);
        }
        self
    }

    fn all(&self) -> Tokens {
        self.0.values().fold(Tokens::default(), |sum, one| sum.plus(*one))
    }

    /// What of this is not told by `spoken`, model by model; together with that it is never more than this, whatever the models are
    /// called there.
    fn untold(&self, spoken: &Self) -> Self {
        let mut left = self.all().beyond(spoken.all());
        let mut out = self.clone().beyond(spoken);
        for tokens in out.0.values_mut() {
            *tokens = tokens.least(left);
            left = left.beyond(*tokens);
        }
        out
    }
}

impl Conversation {
    /// Takes in what a reading found.
    pub(super) fn take(&mut self, news: &News) {
        let News { totals, main, others } = news;
        if totals.is_empty() {
            let read = self.since != Models::default();
            if let Some(first) = main.first().filter(|_| !read) {
                self.goes_on = first.at;
            }
            let next = self.goes_on;
            let (later, before): (Vec<&Said>, Vec<&Said>) = others.iter().partition(|said| said.is_after(next, read));
            self.spoken.take(before);
            self.since.take(later);
            self.since.take(main);
            return;
        }
        let so_far = self.spoken.clone().plus(&self.since);
        for (stated, at) in totals {
            self.unspoken = self.beyond_messages();
            self.stated = stated.clone();
            let (before, after) = main.split_at_checked(*at).unwrap_or((main, &[]));
            self.goes_on = after.first().and_then(|said| said.at);
            let next = self.goes_on;
            let (later, earlier): (Vec<&Said>, Vec<&Said>) = others.iter().partition(|said| said.is_after(next, false));
            (self.spoken, self.since) = (so_far.clone(), Models::default());
            self.spoken.take(before.iter().chain(earlier));
            self.since.take(after.iter().chain(later));
        }
    }

    /// What the client said was used, and no message had told of when it did. What is said after that takes nothing from it.
    pub(super) fn beyond_messages(&self) -> Models {
        self.stated.untold(&self.spoken).most(&self.unspoken)
    }
}
