//! Sockets that are connected to the proxy already, where there are no namespaces.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod common;

use std::net::{TcpListener, UdpSocket};

use common::{Order, Who, World, everybody};
use writ_sandbox::{HostPath, Level, Network, Ports, Reading};

/// Runs Python where the proxy is at 3128 and hooks at 3129.
fn python(who: Who, program: &str, arguments: &[String]) -> (String, String) {
    let world = World::new(who);
    let mut confinement = world.confinement();
    confinement.reading = Reading::Closed;
    let system = ["/usr", "/bin", "/lib", "/lib64", "/etc"];
    confinement.readable = system.map(|path| HostPath::new(path).unwrap()).into();
    confinement.network = Network::Proxied(Ports { hooks: Some(3129), ..Ports::default() });
    let words = ["-c", program].map(str::to_owned).into_iter().chain(arguments.iter().cloned());
    let order = Order {
        level: Level::Landlock,
        program: "python3".into(),
        arguments: words.collect(),
        told: true,
        ..Order::shell(&confinement, "")
    };
    let told = world.run(&order, b"");
    assert_eq!(told.code, Some(0), "{}{}", told.text(), told.errors);
    (told.text(), told.errors)
}

fn people() -> Vec<Who> {
    everybody()
}

/// Without waiting, by `epoll` that knows the socket before it is connected, in a child that it was left to, and by its copy.
#[test]
fn the_proxy_is_reached_as_by_any_socket() {
    let program = r#"
import os, select, socket
PROXY = ('127.0.0.1', 3128)
def talk(s):
    s.sendall(b'x'); print(s.recv(99).decode(), end='')
s = socket.socket(); s.connect(PROXY); talk(s)
s = socket.create_connection(PROXY); talk(s)
s = socket.socket(); s.setblocking(False)
e = select.epoll(); e.register(s, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
assert s.connect_ex(PROXY) == 0, 'non-blocking'
assert e.poll(2)[0][1] & select.EPOLLOUT and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
s.send(b'x'); assert e.poll(2)[0][1] & select.EPOLLIN; print(s.recv(99).decode(), end='')
s = socket.socket()
if os.fork() == 0:
    t = socket.socket(fileno=os.dup(s.fileno())); t.connect(PROXY); talk(t); os._exit(0)
os.wait()
kept, gone = socket.socket(), socket.socket()
os.set_inheritable(kept.fileno(), True)
flags = os.popen('ls /proc/self/fd | wc -l').read()
s = socket.socket(); s.connect(('127.0.0.1', 3129)); print(s.recv(99).decode(), end='')
"#;
    for who in people() {
        let (said, errors) = python(who, program, &[]);
        assert_eq!(said, "from outside\n".repeat(4) + "from hooks\n", "{who:?} {errors}");
    }
}

/// Names are asked for, and where they lead a socket is connected to, whoever speaks first; questions and answers of two at once are kept apart.
#[test]
fn programs_that_know_no_proxy_find_names() {
    let program = r#"
import select, socket, struct
print(sorted({a[4][0] for a in socket.getaddrinfo('name.example', 443, type=socket.SOCK_STREAM)}))
with socket.create_connection(('name.example', 443), timeout=5) as s: print(s.recv(99).decode(), end='')
s = socket.socket(); s.setblocking(False); assert s.connect_ex(('127.0.0.1', 80)) == 0; s.setblocking(True); print(s.recv(99).decode(), end='')
assert s.connect_ex(('127.7.0.1', 443)) == 106, 'connected twice'
question = lambda number, kind: struct.pack('!HHHHHH', number, 256, 1, 0, 0, 0) + b'\1a\0' + struct.pack('!HH', kind, 1)
one, two = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
two.connect(('9.9.9.9', 53)); one.sendto(question(1, 1), ('8.8.8.8', 53)); two.send(question(2, 28)); two.send(question(3, 1))
print(one.recv(512)[:2], two.recv(512)[:2], two.recv(512)[-4:])
"#;
    for who in people() {
        let (said, errors) = python(who, program, &[]);
        let wanted =
            "['127.7.0.1']\n127.7.0.1:443\n127.0.0.1:80\nb'\\x00\\x01' b'\\x00\\x02' b'\\x7f\\x07\\x00\\x01'\n";
        assert_eq!(said, wanted, "{who:?} {errors}");
    }
}

/// Tries every other way; the argument is a port that somebody listens on.
const OTHERWISE: &str = r#"
import ctypes, errno, os, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
port = int(sys.argv[1])
def tried(name, call):
    try: call(); print('DONE', name)
    except OSError as e: print(name, errno.errorcode[e.errno])
new = socket.socket
proxied = lambda: (lambda s: (s.connect(('127.0.0.1', 3128)), s)[1])(new())
tried('other', lambda: new().connect(('127.0.0.1', port)))
tried('after', lambda: proxied().connect(('127.0.0.1', port)))
tried('icmp', lambda: new(2, 2, 1))
tried('raw', lambda: new(2, 3, 1))
tried('mptcp', lambda: new(2, 1, 262))
tried('inet6', lambda: new(10, 1))
tried('unix', lambda: new(1, 1))
tried('vsock', lambda: new(40, 1))
tried('netlink', lambda: new(16, 3))
tried('udp elsewhere', lambda: new(2, 2).connect(('127.0.0.1', port)))
tried('udp to a host', lambda: new(2, 2).connect(('127.7.0.1', 443)))
tried('udp bind', lambda: new(2, 2).bind(('127.0.0.1', 0)))
tried('tcp to names', lambda: new().connect(('127.0.0.1', 53)))
tried('other port', lambda: new().connect(('127.7.0.1', 81)))
tried('beyond', lambda: new().connect(('10.7.0.1', 443)))
tried('bind', lambda: new().bind(('127.0.0.1', 0)))
tried('listen', lambda: new().listen())
tried('pair', lambda: socket.socketpair(1, 1)[0].connect('/run/x'))
def fast(): new().sendto(b'x', 0x20000000, ('127.0.0.1', port))
tried('fast open', fast)
tried('fast connect', lambda: new().setsockopt(6, 30, 1))
# Dissolved (AF_UNSPEC), shut down, then connected elsewhere.
def again(dissolve):
    s = proxied(); dissolve(s); s.connect(('127.0.0.1', port))
def dissolve(s):
    got = libc.connect(s.fileno(), struct.pack('HHI8x', 0, 0, 0), 16)
    if got == 0: print('DONE dissolve')
tried('dissolved', lambda: again(dissolve))
tried('shut', lambda: again(lambda s: s.shutdown(2)))
# High bits that the kernel drops.
def high(): 
    if libc.syscall(41, ctypes.c_ulong(0x100000002), ctypes.c_ulong(1), ctypes.c_ulong(0)) < 0: raise OSError(ctypes.get_errno(), '')
try: high(); print('high made')
except OSError as e: print('high', errno.errorcode[e.errno])
# A packet's own address, in each way that takes one; nobody may hear it.
def packet(send):
    send(new(2, 2)); print('sent')
packet(lambda s: s.sendto(b'x', ('127.0.0.1', port)))
packet(lambda s: s.sendmsg([b'x'], [], 0, ('127.0.0.1', port)))
# Nor one that listens below a folder, or under a name without one.
for name in (b'/run/x', b'\0x'):
    at = struct.pack('H', 1) + name
    s = new(2, 2); libc.sendto(s.fileno(), b'x', 1, 0, at, len(at)); tried('unix packet', lambda: new(1, 2))
# The address is another when it is looked at a second time.
address = ctypes.create_string_buffer(struct.pack('!H', 0) + struct.pack('!HI8x', 3128, 0x7f000001))
struct.pack_into('H', address, 0, 2)
stop = False
def flip():
    while not stop:
        struct.pack_into('!H', address, 2, port); struct.pack_into('!H', address, 2, 3128)
thread = threading.Thread(target=flip); thread.start()
sockets = [new() for _ in range(4)]
for n in range(3000): libc.connect(sockets[n % 4].fileno(), address, 16)
stop = True; thread.join()
"#;

/// Every other way out, with somebody who listens there.
#[test]
fn nothing_else_is_reached() {
    for who in people() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        other.set_nonblocking(true).unwrap();
        let address = other.local_addr().unwrap();
        let packets = UdpSocket::bind(address).unwrap();
        packets.set_nonblocking(true).unwrap();
        let (said, errors) = python(who, OTHERWISE, &[address.port().to_string()]);
        assert!(other.accept().is_err(), "somebody came through: {said}");
        assert!(packets.recv(&mut [0; 16]).is_err(), "a packet came through: {said}");
        assert!(!said.contains("DONE"), "{said}");
        for line in [
            "other EACCES",
            "after EACCES",
            "inet6 EAFNOSUPPORT",
            "udp elsewhere EACCES",
            "udp to a host EISCONN",
            "udp bind EACCES",
            "tcp to names EACCES",
            "other port EACCES",
            "beyond EACCES",
            "icmp EPERM",
            "unix packet EPERM",
            "mptcp EPERM",
            "fast open EPERM",
            "bind EACCES",
            "listen EACCES",
            "dissolved EACCES",
        ] {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert_eq!(errors.matches(&format!("elsewhere {address}")).count(), 1, "{errors}");
        assert!(errors.contains("a server wanted to listen") && errors.contains("neither TCP nor UDP"), "{errors}");
    }
}

/// As many as there may be at a time, from many threads; each has its own.
#[test]
fn many_sockets_are_made_at_once() {
    let program = r#"
import socket, threading
def work():
    for _ in range(25):
        with socket.create_connection(('127.0.0.1', 3128)) as s:
            s.sendall(b'x'); assert s.recv(99) == b'from outside\n'
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print('all')
"#;
    assert_eq!(python(Who::Somebody, program, &[]).0, "all\n");
}
