//! The identity that a SPIFFE Workload API gives an agent's processes: a service in another language gives it, a session records it.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod grpc;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

const ID: &str = "spiffe://example.org/agents/build";

/// The part of the Workload API's published definition that is asked here.
const PROTO: &str = "syntax = \"proto3\";
message X509SVIDRequest {}
message X509SVID { string spiffe_id = 1; bytes x509_svid = 2; bytes x509_svid_key = 3; bytes bundle = 4; string hint = 5; }
message X509SVIDResponse { repeated X509SVID svids = 1; repeated bytes crl = 2; map<string, bytes> federated_bundles = 3; }
service SpiffeWorkloadAPI { rpc FetchX509SVID(X509SVIDRequest) returns (stream X509SVIDResponse); }
";

/// A certificate for the id, its authority, and its key, as an agent of SPIRE would make them.
const CERTIFICATES: &str = "import sys, datetime
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
out, spiffe_id = sys.argv[1], sys.argv[2]
der = serialization.Encoding.DER
begin, end = datetime.datetime(2025, 1, 1), datetime.datetime(2035, 1, 1)
def made(name, key, issuer, signer, extensions):
    one = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
    one = one.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
    for extension, critical in extensions: one = one.add_extension(extension, critical)
    return one.sign(signer, hashes.SHA256()).public_bytes(der)
usage = dict(digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False)
root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
authority = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, 'SPIRE')])
uri = lambda text: x509.SubjectAlternativeName([x509.UniformResourceIdentifier(text)])
files = {
    'bundle': made(authority, root, authority, root, [(x509.BasicConstraints(True, None), True), (x509.KeyUsage(**{**usage, 'key_cert_sign': True}), True), (uri('spiffe://example.org'), False)]),
    'leaf': made(x509.Name([]), leaf, authority, root, [(x509.BasicConstraints(False, None), True), (x509.KeyUsage(**{**usage, 'digital_signature': True}), True), (uri(spiffe_id), True)]),
    'key': leaf.private_bytes(der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
}
for name, data in files.items(): open(f'{out}/{name}', 'wb').write(data)
";

/// The service, on a socket of its own.
const SERVICE: &str = "import os, sys
from concurrent import futures
import grpc, grpc_tools.protoc as protoc
out, said = sys.argv[1], sys.argv[2]
assert protoc.main(['', '-I', out, '--python_out', out, '--grpc_python_out', out, out + '/workload.proto']) == 0
sys.path.insert(0, out)
import workload_pb2 as m, workload_pb2_grpc as g
read = lambda name: open(f'{out}/{name}', 'rb').read()
class Service(g.SpiffeWorkloadAPIServicer):
    def FetchX509SVID(self, request, context):
        if ('workload.spiffe.io', 'true') not in context.invocation_metadata():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, 'no security header')
        if said == 'nothing': context.abort(grpc.StatusCode.PERMISSION_DENIED, 'no identity issued')
        yield m.X509SVIDResponse(svids=[m.X509SVID(spiffe_id=said, x509_svid=read('leaf'), x509_svid_key=read('key'), bundle=read('bundle'))])
server = grpc.server(futures.ThreadPoolExecutor(2))
g.add_SpiffeWorkloadAPIServicer_to_server(Service(), server)
assert server.add_insecure_port(f'unix:{out}/api.sock')
server.start()
os.chmod(f'{out}/api.sock', 0o777)
print('up', flush=True)
sys.stdin.read()
";

/// A service that gives an SVID of the id `said`, or says that there is none.
struct Service {
    folder: PathBuf,
    process: Child,
}

impl Service {
    fn start(name: &str, said: &str) -> Self {
        // The kernel takes no long path for a socket.
        let folder = std::env::temp_dir().join(format!("writ-spiffe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("workload.proto"), PROTO).unwrap();
        let made = Command::new("/usr/bin/python3").args(["-c", CERTIFICATES]).arg(&folder).arg(ID).status();
        assert!(made.unwrap().success(), "python3 makes no certificate: install python3-cryptography");
        let mut service = Command::new(grpc::python());
        service.args(["-c", SERVICE]).arg(&folder).arg(said).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = service.spawn().unwrap();
        let mut up = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut up).unwrap();
        assert_eq!(up, "up\n", "the service did not start");
        Self { folder, process }
    }

    fn address(&self) -> String {
        format!("unix://{}/api.sock", self.folder.display())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// A session that starts with the Workload API there; what its row says, and what `writ identity` shows.
fn started(place: &Workplace, address: &str) -> (Value, String) {
    let mut hook = place.command(&["hook"]).env("SPIFFE_ENDPOINT_SOCKET", address).spawn().unwrap();
    let payload = place.payload("SessionStart", r#","source":"startup""#);
    hook.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let output = hook.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let rows = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let row = rows.rev().find(|row| row["detail"]["event"] == "client-started").unwrap();
    let shown = String::from_utf8(place.writ(&["identity", SESSION]).stdout).unwrap();
    (row["detail"]["workload"].clone(), shown)
}

fn verified(place: &Workplace) -> bool {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    String::from_utf8(place.writ(&["verify", SESSION]).stdout).unwrap().contains("\nverified")
}

#[test]
fn what_a_workload_api_gives_is_on_record() {
    let service = Service::start("given", ID);
    let place = Workplace::new("workload-given");
    let (told, shown) = started(&place, &service.address());
    let leaf = writ_core::Digest::of(&fs::read(service.folder.join("leaf")).unwrap()).to_string();
    assert_eq!(told["id"], ID, "{told}");
    assert_eq!(
        (told["certificate"].as_str(), told["expires"].as_str().map(|text| &text[..10])),
        (Some(leaf.as_str()), Some("2035-01-01"))
    );
    // Whoever runs the agent could stand at the other end too.
    assert_eq!(told["standing"], "reported");
    assert!(shown.contains(&format!("workload {ID}, until 2035-01-01")) && shown.contains("reported"), "{shown}");
    assert!(verified(&place));
    // The key that comes with it is nowhere.
    let key = fs::read(service.folder.join("key")).unwrap();
    let found = Command::new("grep")
        .args(["-rlP", &key[40..48].iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>()])
        .arg(place.folder.join("state"))
        .output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
}

/// Another user's service says what the agent cannot make it say.
#[test]
fn what_another_users_service_gives_is_observed() {
    let service = Service::start("other", ID);
    let mut place = Workplace::new("workload-other");
    place.give();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let (told, _) = started(&place, &service.address());
    // Without root there is no other user to be.
    assert_eq!(told["standing"], if is_root { "observed" } else { "reported" }, "{told}");
}

#[test]
fn a_service_that_gives_none_is_named_and_holds_nobody_up() {
    let refuses = Service::start("refuses", "nothing");
    let lies = Service::start("lies", "spiffe://example.org/another");
    let silent = std::env::temp_dir().join(format!("writ-silent-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&silent).unwrap();
    for (name, address, why) in [
        ("refuses", refuses.address(), "no identity issued"),
        ("lies", lies.address(), ""),
        ("nobody", "unix:///nowhere/api.sock".to_owned(), "No such file"),
        ("silent", format!("unix://{}", silent.display()), "no answer within 2 s"),
        ("strange", "http://example.org".to_owned(), "http://example.org"),
    ] {
        let place = Workplace::new(&format!("workload-{name}"));
        let began = Instant::now();
        let (told, shown) = started(&place, &address);
        if name == "lies" {
            // The id is the certificate's, not what is said beside it.
            assert!(told["id"] == ID || told.get("error").is_some(), "{told}");
        } else {
            assert!(told["error"].as_str().is_some_and(|error| error.contains(why)), "{name}: {told}");
            assert!(shown.contains("workload unknown: "), "{shown}");
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        assert!(verified(&place), "{name}");
    }
    drop(listener);
    fs::remove_file(Path::new(&silent)).unwrap();
    // Where there is none, nothing is said.
    let place = Workplace::new("workload-none");
    assert_eq!(started(&place, "").0, json!(null));
}
