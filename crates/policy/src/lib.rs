//! The `.aflock` policy: parse, check, decide.
//!
//! Pure and total: the file system is seen through [`World`], the clock through [`Setting`], and whatever cannot be judged is
//! denied. A decision has two steps — [`survey`] finds out what a call would touch, [`judge`] applies the rules to those
//! [`Facts`] — so that the second can be done again, years later, from the record. Page: `spec/policy.md`.

mod also;
mod beside;
mod command;
mod domains;
mod enforce;
mod error;
mod facts;
mod flow;
mod glob;
mod grants;
mod host_rule;
mod identity;
mod ignore;
mod judge;
mod layer;
mod limits;
mod members;
mod policy;
mod protect;
mod reach;
mod references;
mod rego;
mod repository;
mod rules;
pub mod sandbox;
mod schema;
mod scope;
mod semantics;
mod survey;
mod unenforced;
mod url;
mod web;
mod world;

pub use also::{Also, Asked, Mounted, PutIn, Rate};
pub use domains::Domains;
pub use enforce::{Confine, Enforce, Enforced, Grant, enforce};
pub use error::{PolicyError, Problem, did_you_mean};
pub use facts::{Apply, Facts, Held, Host, Loss, PlanVerdict, UsedCommand, UsedFile, Uses};
pub use flow::{DataFlow, Flow, Taint};
pub use glob::{Glob, GlobError};
pub use grants::{GrantRule, WebGrants, is_secret_variable};
pub use host_rule::{BadPattern, HostRule};
pub use identity::{Identity, Known};
pub use judge::{near, near_of_type, refusals};
pub use layer::{Layer, judge, judge_limits};
pub use limits::{Action, Limit, Measure, Own, Raised, Refused, Tally, Usage, strictest};
pub use members::{Claims, Consequences};
pub use policy::Policy;
pub use protect::{POLICY_NAMES, PROGRAM, Protected, Setting};
pub use reach::Reach;
pub use references::{Child, Functionary, Named, Reference};
pub use repository::{Config, Entry as IndexEntry, Index, Stat as IndexStat, each as each_index_entry};
pub use schema::lookup;
pub use survey::survey;
pub use url::{percent_decoded, read_host};
pub use world::{Entry, Lexical, Resolved, Search, World, expand, fold};

use writ_core::{Decision, ToolCall};

/// Both steps at once.
pub fn decide(policy: &Policy, call: &ToolCall, setting: &Setting, world: &dyn World) -> Decision {
    judge(&[Layer::own(policy, &survey(policy, call, setting, world))], setting, Tally::default())
}
