//! What is known: Terraform types with their tiers, and the families of shell rules.

use writ_consequence::{rules, terraform};
use writ_core::json::{Object, Value};

use super::arguments::{Refusal, text_of};

/// Everything, or what a filter finds, which is told in full.
pub fn supported(arguments: &Object) -> Result<Value, Refusal> {
    let filter = text_of(arguments, "filter")?.map(str::to_lowercase).filter(|filter| !filter.is_empty());
    let wanted = |names: &[&str]| {
        filter.as_deref().is_none_or(|filter| names.iter().any(|name| name.to_lowercase().contains(filter)))
    };
    let full = filter.is_some();
    let types = terraform::supported().filter(|known| wanted(&[known.kind, known.provider, known.service]));
    let types = types.map(|known| {
        let mut out = Object::new();
        out.push("type", Value::from(known.kind));
        out.push("tier", Value::Number(f64::from(known.tier.number())));
        if full {
            out.push("label", Value::from(known.tier.label()));
            out.push("reason", Value::from(known.reason));
        }
        Value::Object(out)
    });
    let families = rules::families().filter_map(|family| {
        let whole = wanted(&[family.name]) || family.programs.iter().any(|program| wanted(&[program]));
        let rules: Vec<_> = family.rules.iter().filter(|rule| whole || wanted(&[&rule.id])).collect();
        if rules.is_empty() {
            return None;
        }
        let mut out = Object::new();
        out.push("family", Value::from(family.name));
        out.push("about", Value::from(family.about));
        out.push("programs", Value::Array(family.programs.iter().map(|program| Value::from(*program)).collect()));
        out.push("ruleCount", Value::Number(f64::from(u32::try_from(family.rules.len()).unwrap_or(u32::MAX))));
        if full {
            out.push("rules", Value::Array(rules.into_iter().map(rule).collect()));
        }
        Some(Value::Object(out))
    });
    let mut out = Object::new();
    out.push("terraform", Value::Array(types.collect()));
    out.push("shell", Value::Array(families.collect()));
    Ok(Value::Object(out))
}

fn rule(rule: &rules::Rule) -> Value {
    let tier = match rule.tier {
        rules::Judged::As(tier) => Value::Number(f64::from(tier.number())),
        rules::Judged::ByPath => Value::from("path"),
        rules::Judged::Unseen => Value::from("unseen"),
        rules::Judged::BySql => Value::from("sql"),
    };
    let mut out = Object::new();
    out.push("id", Value::from(rule.id.clone()));
    out.push("tier", tier);
    out.push("action", Value::from(rule.action));
    out.push("target", Value::from(rule.target));
    out.push("why", Value::from(rule.why));
    Value::Object(out)
}
