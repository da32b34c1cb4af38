//! Writ in containers: what Docker, Podman and Kubernetes let a process do, made with `runc`.
//!
//! Root alone starts containers here; for anybody else there is nothing to try.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use workplace::Workplace;

const USER: u32 = 1000;
const EPERM: i32 = 1;
const ENOSYS: i32 = 38;

/// A session with one call, as a client has it; what came of it is printed as JSON.
const CLIENT: &str = r#"
import http.server, json, os, subprocess, threading
WRIT, REPOSITORY = '/work/writ', '/home/user/repository'
subprocess.run(['ip', 'link', 'set', 'lo', 'up'])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('content-length', '6'); self.end_headers(); self.wfile.write(b'local\n')
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
port = server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()
os.makedirs(REPOSITORY + '/src')
policy = {'version': '1.0', 'name': 'box', 'files': {'allow': ['src/**']}, 'domains': {'allow': ['allowed.example']},
          'enforce': {'calls': True, 'network': {'loopback': [port]}}}
write = lambda name, text: open(REPOSITORY + '/' + name, 'w').write(text)
write('.aflock', json.dumps(policy)); write('beside', 'outside\n'); write('src/in', 'inside\n')
write('src/script', 'cat src/in beside; curl -sS -m 5 http://127.0.0.1:%d/; curl -sS -m 5 http://denied.example/\n'
      'python3 -c "import socket; print(socket.gethostbyname(\'allowed.example\'))"\n'
      'curl -sS -m 5 --noproxy "*" http://127.0.0.1:%d/; cat /etc/shadow; grep CapEff /proc/self/status\n'
      'echo x > made; echo x > src/made; id -u; exit 3\n' % (port, port))
if os.getuid() == 0 and 'ROOTS' not in os.environ:
    subprocess.run(['chown', '-R', '1000:1000', REPOSITORY])
def writ(*words, given=None):
    return subprocess.run([WRIT, *words], cwd=REPOSITORY, input=given, capture_output=True, text=True)
def hook(event, **members):
    payload = {'session_id': 'box', 'transcript_path': '/none', 'cwd': REPOSITORY, 'permission_mode': 'default',
               'hook_event_name': event, **members}
    return json.loads(writ('hook', given=json.dumps(payload)).stdout)
out = {'doctor': writ('doctor').stdout}
hook('SessionStart', source='startup')
call = {'tool_name': 'Bash', 'tool_use_id': 'one', 'tool_input': {'command': 'sh src/script'}}
answer = hook('PreToolUse', **call).get('hookSpecificOutput', {})
out['answer'] = answer
if 'updatedInput' in answer:
    ran = subprocess.run(['bash', '-c', answer['updatedInput']['command']], cwd=REPOSITORY, capture_output=True, text=True)
    out['code'], out['said'] = ran.returncode, ran.stdout + ran.stderr
    hook('PostToolUseFailure', error='', **call)
    out['made'] = [os.path.exists(REPOSITORY + name) for name in ('/made', '/src/made')]
    out['phases'] = json.loads(writ('verify', 'box', '--format', 'json').stdout)['phases']
test = writ('sandbox', 'test')
out['test'] = [test.returncode, test.stdout + test.stderr]
out['left'] = [name for name in os.listdir('/tmp') if name.startswith('writ-')]
print(json.dumps(out))
"#;

/// What Docker's default profile refuses a process without further capabilities; Kubernetes' `RuntimeDefault` is much the same. In
/// truth these are lists of what is allowed.
fn docker() -> Value {
    let refused = [
        "unshare",
        "setns",
        "mount",
        "umount",
        "umount2",
        "pivot_root",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "mount_setattr",
        "keyctl",
        "add_key",
        "request_key",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "pidfd_getfd",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "open_by_handle_at",
        "kcmp",
        "process_madvise",
        "fanotify_init",
        "syslog",
        "quotactl",
        "acct",
        "swapon",
        "swapoff",
        "reboot",
        "settimeofday",
        "clock_settime",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "iopl",
        "ioperm",
        "vhangup",
        "sethostname",
        "setdomainname",
    ];
    let refuse = |names: Value, error: i32, arguments: Value| json!({"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": arguments});
    let mut calls =
        vec![refuse(json!(refused.as_slice()), EPERM, json!([])), refuse(json!(["clone3"]), ENOSYS, json!([]))];
    // New namespaces: of mounts, groups, names, memory, users, processes, networks.
    for bit in [17, 25, 26, 27, 28, 29, 30] {
        let flag = 1u64 << bit;
        let set = json!([{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}]);
        calls.push(refuse(json!(["clone"]), EPERM, set));
    }
    let vsock = json!([{"index": 0, "value": 40, "valueTwo": 0, "op": "SCMP_CMP_EQ"}]);
    calls.push(refuse(json!(["socket"]), EPERM, vsock));
    json!({
        "defaultAction": "SCMP_ACT_ALLOW", "syscalls": calls,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    })
}

/// What a container lets its first process do.
struct Allowed {
    user: u32,
    /// Whether root owns what it works in.
    roots: bool,
    capabilities: bool,
    profile: Option<Value>,
}

/// Runs the session in a container whose system is this machine's, read-only; `None` where this user starts none.
fn session(name: &str, allowed: &Allowed) -> Option<Value> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let place = Workplace::new(name);
    let root = place.folder.join("root");
    for folder in ["usr", "etc", "proc", "dev", "tmp", "work", "home/user"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for link in ["bin", "lib", "lib64", "sbin"] {
        symlink(Path::new("usr").join(link), root.join(link)).unwrap();
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    chown(root.join("home/user"), Some(allowed.user), Some(allowed.user)).unwrap();
    let writ = PathBuf::from(place.command(&[]).get_program());
    fs::copy(writ, root.join("work/writ")).unwrap();
    fs::write(root.join("work/client.py"), CLIENT).unwrap();
    fs::write(place.folder.join("config.json"), config(&root, allowed).to_string()).unwrap();
    let mut runc = Command::new("runc");
    let container = format!("writ-{name}-{}", std::process::id());
    runc.arg("--root").arg(place.folder.join("runc")).args(["run", "--bundle"]).arg(&place.folder).arg(container);
    let output = runc.output().expect("this test needs `runc`: `cargo xtask test` installs it");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = serde_json::from_slice(&output.stdout);
    Some(told.unwrap_or_else(|error| panic!("{error}: {} {said}", String::from_utf8_lossy(&output.stdout))))
}

fn config(root: &Path, allowed: &Allowed) -> Value {
    let capabilities = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "NET_RAW",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    ];
    let all: Vec<String> = capabilities.iter().map(|name| format!("CAP_{name}")).collect();
    let bounding = if allowed.capabilities { json!(all) } else { json!([]) };
    let own = if allowed.user == 0 { bounding.clone() } else { json!([]) };
    let mount = |target: &str, kind: &str, options: Value| json!({"destination": target, "type": kind, "source": kind, "options": options});
    let bind =
        |folder: &str| json!({"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "ro"]});
    let namespaces = ["pid", "ipc", "uts", "mount", "network"].map(|kind| json!({"type": kind}));
    let mut config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false, "user": {"uid": allowed.user, "gid": allowed.user}, "cwd": "/home/user",
            "args": ["python3", "/work/client.py"],
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/home/user", "WRIT_STATE_DIR=/home/user/state", if allowed.roots { "ROOTS=1" } else { "NONE=" }],
            "capabilities": {"bounding": bounding, "effective": own, "permitted": own},
            "noNewPrivileges": !allowed.capabilities,
        },
        "root": {"path": root}, "hostname": "box",
        "mounts": [
            mount("/proc", "proc", json!([])), mount("/dev", "tmpfs", json!(["nosuid", "mode=755"])),
            mount("/dev/shm", "tmpfs", json!(["nosuid", "nodev", "mode=1777"])), bind("/usr"), bind("/etc"),
        ],
        "linux": {
            "namespaces": namespaces,
            "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    });
    if let Some(profile) = &allowed.profile {
        config["linux"]["seccomp"] = profile.clone();
    }
    config
}

/// The call ran, at this level, and was held.
fn held(told: &Value, level: &str, user: u32) {
    let said = told["said"].as_str().unwrap_or_else(|| panic!("{told:#}"));
    assert!(told["doctor"].as_str().unwrap().contains(&format!("level `{level}`")), "{told:#}");
    assert_eq!(told["code"], 3, "{told:#}");
    assert!(said.contains("inside\n") && said.contains("local\n") && !said.contains("outside\n"), "{said}");
    assert!(said.contains("writ: `denied.example` is not allowed") && said.contains(&format!("\n{user}\n")), "{said}");
    assert!(said.matches("local\n").count() == 2 && said.contains("127.7.0.1\n"), "{said}");
    assert!(said.contains("CapEff:\t0000000000000000\n") && !said.contains("root:"), "{said}");
    assert_eq!(told["made"], json!([false, true]), "{told:#}");
    let phase = told["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "sandbox").unwrap();
    assert_eq!(phase["outcome"], "passed", "{phase:#}");
    let summary = phase["summary"].as_str().unwrap();
    assert!(summary.contains(&format!("({level}; self-test ")) && !summary.contains("escaped"), "{summary}");
    assert_eq!(told["test"][0], 0, "{}", told["test"][1]);
    assert_eq!(told["left"], json!([]), "{told:#}");
}

/// Docker's default: no namespaces, and no `pidfd_getfd`.
#[test]
fn docker_lets_landlock_hold() {
    // Root runs the command as who owns the folder, if that is somebody else.
    for (name, user, roots) in [("docker-user", USER, false), ("docker-root", 0, false), ("docker-roots-own", 0, true)]
    {
        let allowed = Allowed { user, roots, capabilities: true, profile: Some(docker()) };
        let Some(told) = session(name, &allowed) else { return };
        held(&told, "landlock", if roots { 0 } else { USER });
    }
}

/// Kubernetes' `restricted`: the same without any capability, and nothing to be gained by a program.
#[test]
fn a_restricted_pod_lets_landlock_hold() {
    let Some(told) =
        session("restricted", &Allowed { user: USER, roots: false, capabilities: false, profile: Some(docker()) })
    else {
        return;
    };
    held(&told, "landlock", USER);
}

/// Podman's default, and Kubernetes without a profile: namespaces, without a fresh `/proc`.
#[test]
fn without_a_profile_namespaces_hold() {
    for (name, capabilities) in [("podman", true), ("pod", false)] {
        let Some(told) = session(name, &Allowed { user: USER, roots: false, capabilities, profile: None }) else {
            return;
        };
        held(&told, "namespaces", USER);
    }
}
