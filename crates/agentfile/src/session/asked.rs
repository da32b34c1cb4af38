//! An Agentfile's Cedar policies, asked from the facts of a call.
//!
//! Owns what requests a call comes to: its tool, its paths, its hosts. Keeps no state. Invariant: what is not known of a call is left out of
//! a request's context, so that a policy which asks for it errs, which denies. Page: `spec/agentfile.md`.

use writ_core::json;
use writ_core::{Matched, Reason, Subject, Verdict};
use writ_policy::{Also, Asked, Mounted, PutIn, Rate};

use super::client_tools;
use super::lowered::{is_isolated, places};
use crate::agent::Agent;
use crate::cedar::{Decided, Request, Rules, known_action};
use crate::directive::{Directive, Inject, Unit};
use crate::names::{Resolved, call_name, resolve, tool_name};
use crate::placed::{PACKAGE, START};
use crate::reference::ToolRef;
use crate::tool::MAX_OUTPUT;

/// The member of a context that says that a tool was called as often as it may be.
const EXCEEDED: &str = "rate_exceeded";

/// The limits that a sandbox holds.
const HELD: [&str; 6] = ["memory", "process_memory", "processes", "file_size", "open_files", "cpu_time"];
/// Where a secret that is not in a header goes.
const QUERY: &str = "query";

/// The Cedar policies, asked from a call's facts.
#[derive(Debug)]
pub(super) struct Cedar {
    pub agent: Agent,
    pub rules: Rules,
    /// The folder that relative paths hang off.
    pub root: String,
    /// Whether it is what a run runs under.
    pub run: bool,
    /// Whether calls that Writ makes itself are held to it.
    pub calls: bool,
    /// Whether it was unpacked from a package.
    pub package: bool,
    /// The agents that are built on this one.
    pub children: Vec<String>,
}

impl Also for Cedar {
    fn objections(&self, asked: &Asked<'_>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        self.tool(asked, &mut reasons);
        for host in asked.hosts.iter().flatten() {
            self.ask("network.egress", host, Subject::Host, &[("host", host)], &mut reasons);
        }
        for (path, writes) in &asked.paths {
            self.path(path, *writes, &mut reasons);
        }
        for secret in &asked.secrets {
            self.secret(secret, &mut reasons);
        }
        reasons
    }

    fn not_enforced(&self) -> Vec<String> {
        // Its sandbox holds these.
        let isolated = self.calls && is_isolated(&self.agent);
        let idle = |directive: &Directive| match directive {
            // A run that cannot hold one of its directives does not begin.
            _ if self.run => None,
            // A call puts a secret into its own request, and holds its result to a size.
            Directive::Cred(_) if self.calls => None,
            Directive::Limit { name, unit: None, .. } if self.calls && name == MAX_OUTPUT => None,
            Directive::Limit { name, unit: None, .. } if isolated && HELD.contains(&name.as_str()) => None,
            Directive::Cred(_)
            | Directive::Memory { .. }
            | Directive::Optimizer(_)
            | Directive::Healthcheck { .. }
            | Directive::Trace(_)
            | Directive::Limit { unit: Some(Unit::Sec | Unit::Min | Unit::Hour | Unit::Day), .. } => Some(()),
            Directive::Limit { name, .. } if name != "tool_calls" && name != "turns" => Some(()),
            _ => None,
        };
        self.agent
            .each(idle)
            .map(|(entry, ())| format!("/Agentfile/{} ({})", entry.line(), entry.keyword.text))
            .collect()
    }

    fn rates(&self) -> Vec<Rate> {
        let rates = self.agent.each(|directive| match directive {
            Directive::RateLimit { tool, rate } => Some((tool.as_str(), *rate)),
            _ => None,
        });
        let rate = |(tool, rate): (&str, crate::directive::Rate)| {
            let (Resolved::Tool(tool) | Resolved::Later(tool)) = resolve(&self.agent, tool) else { return None };
            let (name, mut tools) = (tool_name(&self.agent, &tool), client_tools(&tool));
            if self.calls {
                tools = vec![call_name(&self.agent, &tool)];
            }
            Some(Rate { name, tools, count: rate.count, seconds: rate.unit.seconds() })
        };
        rates.filter_map(|(_, found)| rate(found)).collect()
    }

    fn mounted(&self) -> Vec<Mounted> {
        let places = places(&self.agent, &self.root).into_iter().filter(|_| self.run);
        let own = Mounted { at: PACKAGE.to_owned(), host: self.root.clone(), copied: false };
        let own = Some(own).filter(|_| self.run && self.package);
        places.map(|place| Mounted { at: place.mount, host: place.host, copied: place.copied }).chain(own).collect()
    }
}

impl Cedar {
    /// The tool: one of the declared tools that mean it has to be permitted, for every path and host of the call.
    fn tool(&self, asked: &Asked<'_>, reasons: &mut Vec<Reason>) {
        if writ_core::OWN_TOOLS.contains(&asked.known_as) {
            return;
        }
        if self.run && asked.tool == START {
            // Declared and permitted by being there, unless it is forbidden.
            let said = self.contexts(asked).into_iter().filter_map(|context| {
                let request = request("tool.invoke", START, &context)?;
                Some(self.rules.ask(self.agent.name_or_default(), &request))
            });
            let refused = said.into_iter().find(refuses);
            return reasons.extend(refused.map(|said| self.reason(&said, Subject::Tool, asked.tool)));
        }
        let means = |tool: &ToolRef| match self.calls {
            // It is called by its own name, whatever it does.
            true => call_name(&self.agent, tool) == asked.tool,
            false => client_tools(tool).iter().any(|name| name == asked.known_as || name == asked.tool),
        };
        let declared: Vec<&ToolRef> = self.agent.tools().map(|(_, tool)| tool).filter(|tool| means(tool)).collect();
        // Undeclared: the list of tools refuses it.
        let mut refused: Option<Decided> = None;
        for tool in &declared {
            let name = tool_name(&self.agent, tool);
            let exceeded = asked.exceeded.contains(&name);
            let worst = self
                .contexts(asked)
                .into_iter()
                .map(|context| [context, exceeded.then(|| (EXCEEDED, String::new())).into_iter().collect()].concat())
                .map(|context| self.decide("tool.invoke", &name, &context))
                .find(|decided| !decided.is_allowed());
            match worst {
                None => return,
                Some(decided) => refused = refused.or(Some(decided)),
            }
        }
        reasons.extend(refused.map(|decided| self.reason(&decided, Subject::Tool, asked.tool)));
    }

    /// What is known of the call: a context for each path and each host, one where there are none. What is not known is left out, so
    /// that a policy that asks for it errs, which denies.
    fn contexts(&self, asked: &Asked<'_>) -> Vec<Vec<(&'static str, String)>> {
        let known = !asked.unresolved;
        let mut out: Vec<Vec<(&'static str, String)>> = Vec::new();
        let hosts: Vec<Option<&str>> =
            if asked.hosts.is_empty() { vec![known.then_some("")] } else { asked.hosts.clone() };
        let paths: Vec<(Option<String>, &str)> = if asked.paths.is_empty() {
            vec![(known.then(String::new), "")]
        } else {
            asked
                .paths
                .iter()
                .map(|(path, writes)| (Some(self.mounted(path)), if *writes { "write" } else { "read" }))
                .collect()
        };
        for host in &hosts {
            for (path, mode) in &paths {
                let mut context = vec![("mode", (*mode).to_owned()), ("caller", String::new())];
                context.extend(path.clone().map(|path| ("path", path)));
                context.extend(host.map(|host| ("host", host.to_owned())));
                out.push(context);
            }
        }
        out
    }

    /// A path of this machine as the agent calls it.
    fn mounted(&self, path: &str) -> String {
        let places = places(&self.agent, &self.root);
        let under = places.iter().find_map(|place| {
            let rest = path
                .strip_prefix(place.host.trim_end_matches('/'))
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            Some(format!("{}{rest}", place.mount))
        });
        under.unwrap_or_else(|| path.to_owned())
    }

    /// What policies forbid of a path; which paths are declared, the lists of files say.
    fn path(&self, path: &str, writes: bool, reasons: &mut Vec<Reason>) {
        let (name, mode) = if writes { ("filesystem.write", "write") } else { ("filesystem.read", "read") };
        let mounted = self.mounted(path);
        let context = [("path", mounted.clone()), ("mode", mode.to_owned()), ("caller", String::new())];
        let Some(request) = request(name, &mounted, &context) else { return };
        let decided = self.rules.ask(self.agent.name_or_default(), &request);
        let decided = if refuses(&decided) { Some(decided) } else { self.of_children(&request) };
        reasons.extend(decided.map(|decided| self.reason(&decided, Subject::Path, path)));
    }

    /// A secret that goes into a request: it has to be declared for the host, and for this place of a request.
    fn secret(&self, secret: &PutIn<'_>, reasons: &mut Vec<Reason>) {
        let context = [("host", secret.host), ("inject", secret.inject)];
        self.ask("cred.resolve", secret.name, Subject::Host, &context, reasons);
        let declared = self.agent.creds().find(|(_, cred)| cred.name == secret.name);
        if let Some((entry, cred)) = declared
            && (cred.inject == Inject::Query) != (secret.inject == QUERY)
        {
            let matched = Matched { subject: Subject::Host, text: secret.host.to_owned(), span: None };
            let message = format!("the secret `{}` is not for the {} of a request", secret.name, secret.inject);
            let instead = format!("`inject:{}` on line {} of {}", secret.inject, entry.line(), self.agent.file);
            let rule = format!("/Agentfile/{}", entry.line());
            reasons.push(Reason { verdict: Verdict::Deny, rule, matched, message, instead });
        }
    }

    /// What forbids it to an agent that is built on this one, by that one's name.
    fn of_children(&self, request: &Request) -> Option<Decided> {
        self.children.iter().map(|child| self.rules.ask(child, request)).find(refuses)
    }

    fn ask(
        &self,
        action: &str,
        resource: &str,
        subject: Subject,
        context: &[(&'static str, &str)],
        reasons: &mut Vec<Reason>,
    ) {
        let context: Vec<(&'static str, String)> =
            context.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let decided = self.decide(action, resource, &context);
        if !decided.is_allowed() {
            reasons.push(self.reason(&decided, subject, resource));
        }
    }

    fn decide(&self, action: &str, resource: &str, context: &[(&'static str, String)]) -> Decided {
        let Some(request) = request(action, resource, context) else { return Decided::refused("no such action") };
        let decided = self.rules.decide(&self.agent, &request);
        if decided.is_allowed() { self.of_children(&request).unwrap_or(decided) } else { decided }
    }

    fn reason(&self, decided: &Decided, subject: Subject, text: &str) -> Reason {
        let matched = Matched { subject, text: text.to_owned(), span: None };
        let forbids = decided.rules.iter().find(|said| said.effect == "forbid");
        let (rule, message) = match forbids {
            Some(said) => (
                format!("/Agentfile/{}", said.line),
                format!("`{text}` is forbidden on line {} of the Agentfile", said.line),
            ),
            None => ("/Agentfile".to_owned(), decided.reasons.first().cloned().unwrap_or_default()),
        };
        let instead = format!("a policy in {} that permits it", self.agent.file);
        Reason { verdict: Verdict::Deny, rule, matched, message, instead }
    }
}

fn refuses(decided: &Decided) -> bool {
    !decided.errors.is_empty() || decided.rules.iter().any(|said| said.effect == "forbid")
}

fn request(action: &str, resource: &str, context: &[(&'static str, String)]) -> Option<Request> {
    let action = known_action(action)?;
    let mut request = Request::new(action, resource);
    for (name, value) in context.iter().filter(|(name, _)| action.context.iter().any(|(member, _)| member == name)) {
        let value = if *name == EXCEEDED { json::Value::Bool(true) } else { json::Value::from(value.as_str()) };
        request.context.push(*name, value);
    }
    Some(request)
}
