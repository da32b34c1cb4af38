//! A name for the command's user and group.
//!
//! Owns the lines that programs look users and groups up in. Refuses nothing: whoever has a name keeps it. Its invariant: no line of the
//! host's is changed or hidden.

/// Who the command is.
#[derive(Clone, Debug)]
pub struct Account {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The folder that the command takes for its home.
    pub home: Vec<u8>,
}

/// A file, and what a line for the account says in it.
pub struct Record {
    /// Where it lies.
    pub file: &'static str,
    /// What it is called in the tree of the sandbox's own.
    pub name: &'static str,
    id: u32,
    rest: Vec<u8>,
}

const NAME: &[u8] = b"writ";

impl Account {
    /// Both files.
    pub fn records(&self) -> [Record; 2] {
        let plain = |byte: &u8| !matches!(byte, b':' | b'\n' | b'\r' | 0);
        let home: &[u8] = if self.home.starts_with(b"/") && self.home.iter().all(plain) { &self.home } else { b"/" };
        let user = [format!(":x:{}:{}::", self.uid, self.gid).as_bytes(), home, b":/bin/sh\n"].concat();
        let group = format!(":x:{}:\n", self.gid).into_bytes();
        [
            Record { file: "/etc/passwd", name: "passwd", id: self.uid, rest: user },
            Record { file: "/etc/group", name: "group", id: self.gid, rest: group },
        ]
    }
}

impl Record {
    /// What the file says with a line more; `None` if it has one for the number.
    pub fn added_to(&self, mut given: Vec<u8>) -> Option<Vec<u8>> {
        let id = self.id.to_string();
        if given.split(|byte| *byte == b'\n').any(|line| field(line, 2) == Some(id.as_bytes())) {
            return None;
        }
        let taken = given.split(|byte| *byte == b'\n').any(|line| field(line, 0) == Some(NAME));
        if !given.is_empty() && !given.ends_with(b"\n") {
            given.push(b'\n');
        }
        given.extend(NAME);
        if taken {
            given.extend(format!("-{id}").into_bytes());
        }
        given.extend(&self.rest);
        Some(given)
    }
}

fn field(line: &[u8], number: usize) -> Option<&[u8]> {
    line.split(|byte| *byte == b':').nth(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_where_none_is() {
        let [user, group] = Account { uid: 7, gid: 8, home: b"/h".to_vec() }.records();
        assert_eq!(user.added_to(b"a:x:7:1::/:/bin/sh\n".to_vec()), None);
        assert_eq!(
            user.added_to(b"a:x:8:7::/:/bin/sh".to_vec()).unwrap(),
            b"a:x:8:7::/:/bin/sh\nwrit:x:7:8::/h:/bin/sh\n"
        );
        assert_eq!(group.added_to(b"writ:x:1:\n".to_vec()).unwrap(), b"writ:x:1:\nwrit-8:x:8:\n");
        let [user, _] = Account { uid: 7, gid: 8, home: b"/h:0".to_vec() }.records();
        assert_eq!(user.added_to(Vec::new()).unwrap(), b"writ:x:7:8::/:/bin/sh\n");
    }
}
