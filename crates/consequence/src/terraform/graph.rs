//! Who refers to whom: the configuration's references, and the prior state's for what has left the configuration.

use super::judge::Judged;
use super::plan::{Action, MAX_PATH, Plan, bare};
use crate::report::{Dependency, Effect, Missing};
use std::collections::{HashMap, HashSet, VecDeque};
use writ_core::json::{Object, Value};

/// Most dependents that are listed of one change, and of all changes.
const MAX_LISTED: usize = 32;
const MAX_TOTAL: usize = 50_000;
/// Most references that are followed for one change.
const MAX_STEPS: usize = 512;
/// Deepest modules, blocks in blocks, and longest names that are followed.
const MAX_DEPTH: usize = 32;
const MAX_NAME: usize = 256;
/// Most entries of a state's `depends_on` that are read.
const MAX_STATED: usize = 64;

/// Nodes are resources without their index, `data` sources, variables and outputs; only the first are ever listed.
#[derive(Debug, Default)]
pub struct Graph {
    ids: HashMap<String, usize>,
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    name: String,
    resource: bool,
    needs: Vec<usize>,
    needed_by: Vec<usize>,
    /// What the plan does with it.
    action: Option<Action>,
}

impl Graph {
    /// Reads the references of a plan.
    pub fn read(plan: &Plan<'_>) -> Self {
        let mut graph = Self::default();
        let mut modules: Vec<(String, &Value, usize)> =
            plan.configuration.map(|root| (String::new(), root, 0)).into_iter().collect();
        while let Some((path, module, depth)) = modules.pop() {
            graph.module(&path, module);
            let fits = |(name, _): &(&str, _)| path.len() + name.len() < MAX_PATH;
            for (name, call) in members(module, "module_calls").filter(fits) {
                let inner = format!("{path}module.{name}.");
                for (variable, expression) in members(call, "expressions") {
                    let from = graph.node(format!("{inner}|var.{variable}"), false);
                    graph.refer(from, &path, expression);
                }
                if let Some(module) = call.get("module").filter(|_| depth < MAX_DEPTH) {
                    modules.push((inner, module, depth + 1));
                }
            }
        }
        graph.stated(plan);
        for change in &plan.changes {
            let id = graph.node(bare(change.address), true);
            if let Some(node) = graph.nodes.get_mut(id) {
                let action = Some(change.action);
                node.action = if weight(node.action) >= weight(action) { node.action } else { action };
            }
        }
        graph
    }

    fn module(&mut self, path: &str, module: &Value) {
        let whole = self.node(format!("{path}|all"), false);
        for resource in module.get("resources").and_then(Value::as_array).unwrap_or_default() {
            let Some(address) = resource.get("address").and_then(Value::as_str) else { continue };
            let listed = !address.starts_with("data.");
            let from = self.node(format!("{path}{address}"), listed);
            self.edge(whole, from);
            for part in ["expressions", "count_expression", "for_each_expression"] {
                if let Some(part) = resource.get(part) {
                    self.refer(from, path, part);
                }
            }
            self.depend(from, path, resource);
        }
        for (name, output) in members(module, "outputs") {
            let from = self.node(format!("{path}|output.{name}"), false);
            if let Some(expression) = output.get("expression") {
                self.refer(from, path, expression);
            }
            self.depend(from, path, output);
        }
        for (name, _) in members(module, "module_calls") {
            let inner = self.node(format!("{path}module.{name}.|all"), false);
            self.edge(whole, inner);
        }
    }

    /// Edges for all `references` in an expression: blocks nest.
    fn refer(&mut self, from: usize, path: &str, expression: &Value) {
        let mut stack = vec![(expression, 0)];
        while let Some((value, depth)) = stack.pop() {
            if let Some(references) = value.get("references").and_then(Value::as_array) {
                for reference in references.iter().filter_map(Value::as_str) {
                    self.reference(from, path, reference);
                }
            }
            if depth < MAX_DEPTH {
                let members = value.as_object().into_iter().flat_map(Object::iter);
                let blocks = members.filter(|(name, _)| *name != "constant_value" && *name != "references");
                stack.extend(blocks.map(|(_, inner)| (inner, depth + 1)));
                stack.extend(value.as_array().unwrap_or_default().iter().map(|inner| (inner, depth + 1)));
            }
        }
    }

    fn depend(&mut self, from: usize, path: &str, entry: &Value) {
        for text in entry.get("depends_on").and_then(Value::as_array).unwrap_or_default() {
            match text.as_str().map(|text| (text, text.strip_prefix("module."))) {
                Some((text, Some(module))) if !module.contains('.') => {
                    let to = self.node(format!("{path}{text}.|all"), false);
                    self.edge(from, to);
                }
                Some((text, _)) => self.reference(from, path, text),
                None => {}
            }
        }
    }

    fn reference(&mut self, from: usize, path: &str, reference: &str) {
        if reference.len() > MAX_NAME {
            return;
        }
        let whole = bare(reference);
        let mut steps = whole.split('.');
        let (to, resource) = match (steps.next(), steps.next(), steps.next()) {
            (Some("var"), Some(name), _) => (format!("{path}|var.{name}"), false),
            (Some("module"), Some(module), Some(output)) => (format!("{path}module.{module}.|output.{output}"), false),
            (Some("data"), Some(kind), Some(name)) => (format!("{path}data.{kind}.{name}"), false),
            // `module.x` alone always comes with the output that is meant.
            (Some("module" | "data" | "local" | "each" | "count" | "path" | "terraform" | "self"), ..) => return,
            (Some(kind), Some(name), _) => (format!("{path}{kind}.{name}"), true),
            _ => return,
        };
        let to = self.node(to, resource);
        self.edge(from, to);
    }

    /// The state lists dependencies of dependencies too: those are left to the one in between.
    fn stated(&mut self, plan: &Plan<'_>) {
        let of: HashMap<String, HashSet<&str>> = plan
            .state
            .iter()
            .map(|found| {
                (bare(&found.address), found.depends_on.iter().take(MAX_STATED).filter_map(Value::as_str).collect())
            })
            .collect();
        for (address, needs) in &of {
            if self.ids.get(address).and_then(|id| self.nodes.get(*id)).is_some_and(|node| !node.needs.is_empty()) {
                continue;
            }
            let from = self.node(address.clone(), true);
            for need in needs {
                let between = |other: &&str| of.get(*other).is_some_and(|further| further.contains(need));
                if !need.contains("data.") && !needs.iter().any(between) {
                    let to = self.node((*need).to_owned(), true);
                    self.edge(from, to);
                }
            }
        }
    }

    fn node(&mut self, name: String, resource: bool) -> usize {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node { name: name.clone(), resource, ..Node::default() });
        self.ids.insert(name, id);
        id
    }

    fn edge(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        if let Some(node) = self.nodes.get_mut(from).filter(|node| node.needs.last() != Some(&to)) {
            node.needs.push(to);
            if let Some(node) = self.nodes.get_mut(to) {
                node.needed_by.push(from);
            }
        }
    }

    /// Writes to each delete and replacement what depends on it.
    pub fn impact(&self, judged: &mut [Judged<'_>]) {
        let mut first: HashMap<usize, usize> = HashMap::new();
        let mut seen = vec![usize::MAX; self.nodes.len()];
        let mut total = 0;
        for index in 0..judged.len() {
            let change = judged.get(index).map(|judged| judged.change).filter(|change| change.action.deletes());
            let Some(id) = change.and_then(|change| self.ids.get(&bare(change.address)).copied()) else { continue };
            let instance = first.get(&id).and_then(|first| judged.get(*first));
            let found = match instance {
                _ if total >= MAX_TOTAL => (Vec::new(), true),
                Some(instance) => (instance.mutation.dependencies.clone(), false),
                None => self.dependents(id, index, &mut seen),
            };
            first.entry(id).or_insert(index);
            total += found.0.len();
            if let Some(judged) = judged.get_mut(index) {
                judged.mutation.missing.extend(found.1.then(more));
                judged.mutation.dependencies = found.0;
            }
        }
    }

    /// `seen` holds for each node the round it was last met in: a set that need not be made anew for each change.
    fn dependents(&self, start: usize, round: usize, seen: &mut [usize]) -> (Vec<Dependency>, bool) {
        let mut out = Vec::new();
        let mut queue = VecDeque::from([(start, start, 0_usize)]);
        let mut left = MAX_STEPS;
        let mut is_new = |id: usize| seen.get_mut(id).is_some_and(|last| std::mem::replace(last, round) != round);
        is_new(start);
        while let Some((id, via, distance)) = queue.pop_front() {
            for next in self.nodes.get(id).into_iter().flat_map(|node| &node.needed_by) {
                left = left.saturating_sub(1);
                if out.len() >= MAX_LISTED || left == 0 {
                    return (out, true);
                }
                let Some(node) = self.nodes.get(*next).filter(|_| is_new(*next)) else { continue };
                if !node.resource {
                    queue.push_front((*next, via, distance));
                    continue;
                }
                out.push(self.dependency(node, via, distance > 0));
                queue.push_back((*next, *next, distance + 1));
            }
        }
        (out, false)
    }

    fn dependency(&self, node: &Node, via: usize, transitive: bool) -> Dependency {
        let through = self.nodes.get(via).map_or("", |node| node.name.as_str());
        let also = match node.action {
            Some(Action::Delete) => ", and is deleted by the same plan",
            Some(Action::Replace) => ", and is replaced by the same plan",
            _ => "",
        };
        let how = if transitive { "depends on it through" } else { "refers to" };
        let kind = node.name.rsplit('.').nth(1).unwrap_or_default().to_owned();
        Dependency { id: node.name.clone(), kind, reason: [how, " `", through, "`", also].concat(), transitive }
    }

    /// The resources that one refers to, and those that refer to it: without their indexes, variables and outputs followed.
    pub fn neighbours(&self, address: &str) -> Vec<&str> {
        let Some(start) = self.ids.get(&bare(address)) else { return Vec::new() };
        let mut out = Vec::new();
        for forward in [true, false] {
            let mut seen = HashSet::from([*start]);
            let mut stack = vec![*start];
            let mut left = MAX_STEPS;
            while let Some(node) = stack.pop().and_then(|id| self.nodes.get(id)) {
                let next = if forward { &node.needs } else { &node.needed_by };
                for next in next.iter().take(left) {
                    if !seen.insert(*next) {
                        continue;
                    }
                    match self.nodes.get(*next) {
                        Some(node) if node.resource => out.push(node.name.as_str()),
                        _ => stack.push(*next),
                    }
                }
                left = left.saturating_sub(next.len());
            }
        }
        out
    }
}

/// That there may be more than is listed.
fn more() -> Missing {
    Missing {
        key: "dependencies".to_owned(),
        description: "not everything that depends on it is listed: there is too much of it".to_owned(),
        effect: Effect::LowersConfidence,
    }
}

/// Of several instances' actions the worst is told.
fn weight(action: Option<Action>) -> u8 {
    match action {
        Some(Action::Delete) => 2,
        Some(Action::Replace) => 1,
        Some(_) | None => 0,
    }
}

fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(name).and_then(Value::as_object).into_iter().flat_map(|object| object.iter())
}
