//! An Agentfile in its usual form, and a first one.
//!
//! Owns the white space between words. Never changes a word, a comment, an order or the body of a block. Invariant: the formatted file
//! declares what the file declared, and formatting it again changes nothing.

use crate::lines::lines;
use crate::parse::{Options, parse_with};

/// The file in its usual form; `None` where it has errors that keep it from being read.
pub fn format(text: &str) -> Option<String> {
    // Which blocks there are is for the parser to say.
    let (agent, found) = parse_with(text.as_bytes(), "", &Options { extensions: extensions(text) });
    if found.iter().any(crate::diagnostic::Diagnostic::is_error) {
        return None;
    }
    let opens: Vec<usize> =
        agent.entries.iter().filter(|entry| entry.opens_block()).map(crate::agent::Entry::line).collect();
    let mut out = String::with_capacity(text.len());
    let (mut in_block, mut blank) = (false, true);
    for line in lines(text) {
        if in_block {
            in_block = line.text.trim_matches([' ', '\t']) != "END";
            out.push_str(if in_block { line.text } else { "END" });
            out.push('\n');
            continue;
        }
        let mut words: Vec<String> = line.tokens().into_iter().map(|token| token.text).collect();
        words.extend(line.comment().map(|comment| comment.trim().to_owned()));
        if words.is_empty() {
            if !blank {
                out.push('\n');
            }
            blank = true;
            continue;
        }
        blank = false;
        out.push_str(&words.join(" "));
        out.push('\n');
        in_block = opens.contains(&line.number);
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    Some(out)
}

/// Vendors of a file's extensions: formatting takes them as they are.
fn extensions(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_whitespace().next()?.strip_prefix("X-")?.rsplit_once('-'));
    names.map(|(vendor, _)| vendor.to_owned()).collect()
}

/// A first Agentfile for an agent of this name. It has no findings.
pub fn starter(name: &str) -> String {
    format!(
        "# syntax=agentrc.agentfile/v0.1\n\
         AGENT {name}\n\
         FROM scratch\n\
         CMD claude --print\n\
         AUDIT all\n\
         \n\
         # What it may ask for. A tool has to be permitted, too: see below.\n\
         TOOL utcp:file_read\n\
         TOOL utcp:file_write\n\
         MOUNT /workspace rw\n\
         \n\
         # Hosts and secrets, one a line:\n\
         #   URL https://api.example.com\n\
         #   CRED example_token env:EXAMPLE_TOKEN host:api.example.com\n\
         \n\
         ALLOW invoke utcp:file_read\n\
         RATELIMIT file_write 60/hour\n\
         TIMEOUT 3600\n\
         \n\
         POLICY\n  \
         // Cedar: comments begin with two slashes.\n  \
         permit(\n    \
         principal == AgentRC::Agent::\"{name}\",\n    \
         action == AgentRC::Action::\"tool.invoke\",\n    \
         resource == AgentRC::Tool::\"file_write\"\n  \
         ) when {{ context.path like \"/workspace/*\" }};\n\
         END\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::lint;

    #[test]
    fn the_first_one_has_no_findings_and_is_in_form() {
        let text = starter("code-reviewer");
        assert_eq!(lint(text.as_bytes(), "Agentfile", &Options::default()).found, []);
        assert_eq!(format(&text).as_deref(), Some(text.as_str()));
    }

    #[test]
    fn white_space_alone_changes() {
        let text = "\n\nAGENT   a\t # c\r\n\n\n  CMD run  x\nPOLICY\n  // a   b \n  END \nSOP s\n TOOL  x\nEND\n\n";
        let formatted = format(text).unwrap();
        assert_eq!(formatted, "AGENT a # c\n\nCMD run x\nPOLICY\n  // a   b \nEND\nSOP s\n TOOL  x\nEND\n");
        assert_eq!(format(&formatted).as_deref(), Some(formatted.as_str()));
        assert_eq!(format("NOPE\n"), None);
        assert_eq!(format("AGENT a\r\nSOP s\r\r\n x\r\r\r\nEND\n").unwrap(), "AGENT a\nSOP s\n x\nEND\n");
    }
}
