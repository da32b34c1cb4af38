//! What names of members, and of tools, say of the values they hold.

/// Members that name a file or folder.
pub(super) const PATHS: [&str; 24] = [
    "path",
    "paths",
    "file",
    "files",
    "filepath",
    "filename",
    "filenames",
    "dir",
    "directory",
    "folder",
    "root",
    "cwd",
    "source",
    "src",
    "destination",
    "dest",
    "dst",
    "target",
    "from",
    "to",
    "uri",
    "notebookpath",
    "workdir",
    "output",
];
/// Members that say where a tool works, not on what.
pub(super) const PLACES: [&str; 8] =
    ["repopath", "repositorypath", "projectroot", "projectpath", "workspaceroot", "workspacepath", "workdir", "cwd"];
/// Words of a tool's own name that may mean all of such a place.
pub(super) const WHOLE: [&str; 6] = ["delete", "remove", "move", "rename", "truncate", "replace"];
/// Members that name a host or URL, with or without a scheme.
pub(super) const HOSTS: [&str; 12] = [
    "url",
    "urls",
    "host",
    "hosts",
    "hostname",
    "domain",
    "endpoint",
    "server",
    "baseurl",
    "webhook",
    "webhookurl",
    "origin",
];
/// Members that hold arguments or code rather than prose.
pub(super) const CODE: [&str; 22] = [
    "args",
    "arguments",
    "argv",
    "options",
    "flags",
    "params",
    "parameters",
    "env",
    "environment",
    "sql",
    "statement",
    "expression",
    "code",
    "script",
    "source",
    "command",
    "commands",
    "cmd",
    "commandline",
    "stdin",
    "snippet",
    "function",
];
/// Schemes by which a host is contacted.
pub(super) const NETWORK: [&str; 30] = [
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "scp",
    "ssh",
    "git",
    "git+ssh",
    "git+https",
    "git+http",
    "svn",
    "rsync",
    "ldap",
    "ldaps",
    "smb",
    "redis",
    "rediss",
    "postgres",
    "postgresql",
    "mysql",
    "mongodb",
    "mongodb+srv",
    "amqp",
    "gopher",
    "tftp",
    "telnet",
    "dict",
];
/// First words of a tool's own name that say it only looks.
pub(super) const LOOKS: [&str; 10] =
    ["read", "get", "list", "search", "find", "view", "stat", "show", "describe", "tree"];
/// Words of a tool's own name that say it changes files.
pub(super) const CHANGES: [&str; 16] = [
    "write", "edit", "create", "delete", "remove", "move", "rename", "update", "append", "save", "patch", "insert",
    "replace", "upload", "mkdir", "truncate",
];

/// What a member's name says of its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Path,
    /// A path that the tool works in.
    Place,
    Host,
    Code,
    Other,
}

impl Member {
    pub(super) fn of(name: &str) -> Self {
        let name = plain_name(name);
        match name.as_str() {
            name if PLACES.contains(&name) => Self::Place,
            name if PATHS.contains(&name) || name.ends_with("path") || name.ends_with("file") => Self::Path,
            name if HOSTS.contains(&name) || name.ends_with("url") => Self::Host,
            name if CODE.contains(&name) => Self::Code,
            _ => Self::Other,
        }
    }
}

/// A member's name without case and separators: `file_path`, `filePath` and `File-Path` are one.
pub(super) fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
