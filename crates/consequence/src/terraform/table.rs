//! The data files: `data/terraform/*.txt`, whose heads say how they are written.

use super::rule::{Condition, Link, Loss, OnCreate, OnDelete, OnUpdate, Op, Role, Transition};
use crate::report::Tier;
use std::collections::HashMap;
use std::sync::LazyLock;

const FILES: [&str; 14] = [
    include_str!("../../data/terraform/aws.txt"),
    include_str!("../../data/terraform/aws-network.txt"),
    include_str!("../../data/terraform/aws-settings.txt"),
    include_str!("../../data/terraform/google.txt"),
    include_str!("../../data/terraform/google-settings.txt"),
    include_str!("../../data/terraform/google-iam.txt"),
    include_str!("../../data/terraform/azurerm.txt"),
    include_str!("../../data/terraform/azurerm-settings.txt"),
    include_str!("../../data/terraform/azuread.txt"),
    include_str!("../../data/terraform/kubernetes.txt"),
    include_str!("../../data/terraform/github.txt"),
    include_str!("../../data/terraform/cloudflare.txt"),
    include_str!("../../data/terraform/datadog.txt"),
    include_str!("../../data/terraform/utility.txt"),
];

/// What is known of a resource type.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// `aws`: what the type's name starts with.
    pub provider: &'static str,
    /// `aws_s3_bucket`.
    pub kind: &'static str,
    /// `s3`.
    pub service: &'static str,
    /// A delete's tier when no rule holds.
    pub tier: Tier,
    /// Why.
    pub reason: &'static str,
    pub(super) deletes: Vec<OnDelete>,
    pub(super) updates: Vec<OnUpdate>,
    pub(super) creates: Vec<OnCreate>,
    pub(super) links: Vec<Link>,
}

struct Table {
    kinds: Vec<Known>,
    by_name: HashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let lines = FILES.iter().flat_map(|text| text.lines());
    // A line that does not read is a defect of this crate: a test looks at every one of them.
    let kinds: Vec<Known> = lines.filter_map(|line| read(line)?.ok()).flatten().collect();
    let by_name = kinds.iter().enumerate().map(|(index, known)| (known.kind, index)).collect();
    Table { kinds, by_name }
});

/// What is known of a type, by its exact name.
pub fn known(kind: &str) -> Option<&'static Known> {
    TABLE.kinds.get(*TABLE.by_name.get(kind)?)
}

/// All known types, in the files' order.
pub fn all() -> impl ExactSizeIterator<Item = &'static Known> {
    TABLE.kinds.iter()
}

/// A line: nothing (a remark or an example), its types, or what is wrong with it.
fn read(line: &'static str) -> Option<Result<Vec<Known>, &'static str>> {
    let line = line.trim();
    (!line.is_empty() && !line.starts_with(['#', '='])).then(|| known_of(line).ok_or(line))
}

fn known_of(line: &'static str) -> Option<Vec<Known>> {
    let mut columns = line.split('|').map(str::trim);
    let (kinds, service) = (columns.next()?, columns.next()?);
    let tier = Tier::of(columns.next()?.parse().ok()?)?;
    let reason = columns.next().filter(|reason| !reason.is_empty())?;
    let (deletes, updates, creates, links) = Default::default();
    let mut known = Known { provider: "", kind: "", service, tier, reason, deletes, updates, creates, links };
    for rule in columns.next().unwrap_or_default().split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
        add(&mut known, rule)?;
    }
    if columns.next().is_some() {
        return None;
    }
    let named = |kind: &'static str| Known { provider: kind.split('_').next().unwrap_or(kind), kind, ..known.clone() };
    Some(kinds.split_whitespace().map(named).collect())
}

fn add(known: &mut Known, rule: &'static str) -> Option<()> {
    let mut letters = rule.chars();
    let sign = letters.next()?;
    let rest = letters.as_str().trim();
    if sign == '@' {
        known.links.push(link(rest)?);
        return Some(());
    }
    let (head, tail) = rest.split_once(" : ")?;
    let (head, tail) = (head.trim(), tail.trim());
    match sign {
        '?' => {
            let (tier, reason) = tail.split_once(' ')?;
            let tier = Tier::of(tier.parse().ok()?)?;
            known.deletes.push(OnDelete { conditions: conditions(head)?, tier, reason });
        }
        '-' => {
            let (path, transition) = head.split_once("->")?;
            let transition = match transition {
                "off" => Transition::Off,
                "less" => Transition::Less,
                "shorter" => Transition::Shorter,
                "changed" => Transition::Changed,
                text => Transition::To(text),
            };
            known.updates.push(OnUpdate { path, transition, loss: Loss::of(tail)? });
        }
        '!' => known.creates.push(OnCreate { conditions: conditions(head)?, loss: Loss::of(tail)? }),
        _ => return None,
    }
    Some(())
}

fn link(text: &'static str) -> Option<Link> {
    let mut words = text.split_whitespace();
    let role = match words.next()? {
        "backup" => Role::Backup,
        "replica" => Role::Replica,
        "guard" => Role::Guard,
        "key" => return Some(Link { role: Role::Key, path: "", kind: "*" }),
        _ => return None,
    };
    Some(Link { role, path: words.next()?, kind: words.next()? })
}

fn conditions(text: &'static str) -> Option<Vec<Condition>> {
    text.split('&').map(|text| condition(text.trim())).collect()
}

fn condition(text: &'static str) -> Option<Condition> {
    let made = |path, op, values| (is_path(path)).then_some(Condition { path, op, values });
    if let Some((path, values)) = text.split_once("!=") {
        return made(path, Op::Not, values.split(',').collect());
    }
    if let Some((path, test)) = text.split_once('~') {
        let op = match test {
            "world" => Op::World,
            "admin" => Op::Admin,
            "public" => Op::Public,
            _ => return None,
        };
        return made(path, op, Vec::new());
    }
    if let Some((path, values)) = text.split_once('=') {
        return made(path, Op::Is, values.split(',').collect());
    }
    if let Some((path, limit)) = text.split_once('>') {
        return made(path, Op::Above(limit.parse().ok()?), Vec::new());
    }
    if let Some((path, limit)) = text.split_once('<') {
        return made(path, Op::Below(limit.parse().ok()?), Vec::new());
    }
    match text.strip_prefix('!') {
        Some(path) => made(path, Op::Empty, Vec::new()),
        None => made(text, Op::Set, Vec::new()),
    }
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reads_and_no_type_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for text in FILES {
            for line in text.lines() {
                match read(line) {
                    Some(Ok(all)) => {
                        assert!(!all.is_empty(), "{line}");
                        for known in all {
                            assert!(seen.insert(known.kind), "{} stands twice", known.kind);
                            assert!(is_path(known.kind) && is_path(known.service), "{line}");
                            assert!(known.reason.len() > 15, "{line}");
                        }
                    }
                    Some(Err(line)) => panic!("{line}"),
                    None => {}
                }
            }
        }
        assert!(seen.len() >= 400, "{} types", seen.len());
    }

    #[test]
    fn what_is_mistyped_is_refused() {
        for line in [
            "aws_x | s | 9 | a reason",
            "aws_x | s | 4",
            "aws_x | s | 4 | a reason | ? a=1 3 no colon",
            "aws_x | s | 4 | a reason | - a->off : nonsense",
            "aws_x | s | 4 | a reason | ! a~wrong : exposure",
            "aws_x | s | 4 | a reason | @backup",
            "aws_x | s | 4 | a reason | | more",
        ] {
            assert!(matches!(read(line), Some(Err(_))), "{line}");
        }
    }
}
