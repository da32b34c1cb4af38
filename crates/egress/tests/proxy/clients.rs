//! Real programs, with the variables and files that the sandbox gives them. One that is not installed fails its test, unless
//! `WRIT_TESTS_WITHOUT` names it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use writ_egress::{Places, java_options, variables};

use crate::direct::ask;
use crate::host::{Host, Seen, text};
use crate::world::{Run, VALUE, World};

/// A run with one host that receives a secret, and a host beside it whose TLS is passed through.
struct Scene {
    run: Run,
    host: Host,
    mark: String,
}

fn scene(answers: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> Scene {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], Arc::new(answers));
    let mark = world.secret(&["api.test"]);
    let run = world.run();
    // The address that programs without a proxy are given.
    assert_eq!(ask(&run, "api.test", 1).1, Some("127.7.0.1".parse().unwrap()));
    Scene { run, host, mark }
}

/// Says what it was sent.
fn greet(seen: &Seen) -> Vec<u8> {
    text(&format!("hello {}", seen.field("authorization").unwrap_or_default()))
}

impl Scene {
    fn url(&self) -> String {
        format!("https://api.test:{}", self.host.port)
    }

    /// A program with nothing in its environment but what it is given inside.
    fn program(&self, name: &str, proxied: bool) -> Option<Command> {
        let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).stdout(Stdio::null()).status();
        if !found.unwrap().success() {
            let without = std::env::var("WRIT_TESTS_WITHOUT").unwrap_or_default();
            assert!(
                without.split(',').any(|one| one == name),
                "`{name}` is not installed; WRIT_TESTS_WITHOUT={name} goes without"
            );
            return None;
        }
        let (ca, bundle, _) = self.run.trust();
        let mut command = Command::new(name);
        command.env_clear().current_dir(self.run.folder.path()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.run.folder.path());
        for kept in ["PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME"] {
            std::env::var_os(kept).map(|value| command.env(kept, value));
        }
        if let (None, Some(home)) = (std::env::var_os("RUSTUP_HOME"), std::env::var_os("HOME")) {
            command.env("RUSTUP_HOME", Path::new(&home).join(".rustup"));
        }
        let given = variables(&Places { proxy: self.run.proxy, trust: Some((&ca, &bundle)) });
        command.envs(given.into_iter().filter(|(name, _)| proxied || !name.to_lowercase().contains("proxy")));
        Some(command)
    }

    /// Runs a program: it worked, saw no value, and the host saw one.
    fn works(&self, mut command: Command) -> String {
        let shown = format!("{command:?}");
        let Output { status, stdout, stderr } = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{shown}\n{said}\n{:#?}", self.run.records.lock().unwrap());
        assert!(!said.contains("s3cr3t") && !said.contains(&STANDARD.encode(VALUE)[..20]), "{said}");
        said
    }

    /// The host was sent the value.
    fn received(&self, value: &str) {
        let seen = self.host.seen();
        assert!(seen.iter().any(|seen| seen.field("authorization").as_deref() == Some(value)), "{seen:#?}");
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.run.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn curl() {
    let scene = scene(greet);
    let resolve = format!("api.test:{}:127.7.0.1", scene.host.port);
    for proxied in [true, false] {
        let Some(mut command) = scene.program("curl", proxied) else { return };
        command.args(["-sS", "--fail", "-H", &format!("Authorization: Bearer {}", scene.mark), &scene.url()]);
        if !proxied {
            command.args(["--resolve", &resolve]);
        }
        assert!(scene.works(command).starts_with("hello Bearer ***"));
        scene.received(&format!("Bearer {VALUE}"));
        let mut basic = scene.program("curl", true).unwrap();
        basic.args(["-sS", "--fail", "-u", &format!("me:{}", scene.mark), &scene.url()]);
        scene.works(basic);
        scene.received(&format!("Basic {}", STANDARD.encode(format!("me:{VALUE}"))));
    }
    // What is refused is said.
    let mut refused = scene.program("curl", true).unwrap();
    let output = refused.args(["-sS", "http://evil.com/"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "writ: `evil.com` is not allowed (/domains/allow)\n");
    let mut tunnel = scene.program("curl", true).unwrap();
    let output = tunnel.args(["-sS", "https://evil.com/"]).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("403"));
}

#[test]
fn curl_uploads_and_large_downloads() {
    let scene = scene(|seen| {
        let size = seen.body.len();
        let body = "x".repeat(20 << 20);
        text(&format!("{size}\n{body}"))
    });
    let Some(mut command) = scene.program("curl", true) else { return };
    // Large enough that curl waits for the host's word (`Expect: 100-continue`), which never comes.
    std::fs::write(scene.run.folder.path().join("up"), vec![b'u'; 8 << 20]).unwrap();
    command.args(["-sS", "--fail", "--data-binary", "@up", &scene.url()]);
    let said = scene.works(command);
    assert!(said.starts_with("8388608\n") && said.len() == (20 << 20) + 8);
}

#[test]
fn git() {
    let scene = scene(|seen| {
        if seen.field("authorization").is_none() {
            return b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\n\r\n"
                .to_vec();
        }
        let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
        let head = line("# service=git-upload-pack\n");
        let commit = "1234567890123456789012345678901234567890";
        let body = format!("{head}0000{}0000", line(&format!("{commit} refs/heads/main\0side-band-64k\n")));
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let Some(mut command) = scene.program("git", true) else { return };
    command.args(["ls-remote", &format!("https://me:{}@api.test:{}/repo.git", scene.mark, scene.host.port)]);
    assert!(scene.works(command).contains("refs/heads/main"));
    scene.received(&format!("Basic {}", STANDARD.encode(format!("me:{VALUE}"))));
}

#[test]
fn python() {
    let scene = scene(greet);
    let urllib = "import sys,urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={'Authorization': 'Bearer '+sys.argv[2]})).read())";
    let requests =
        "import sys,requests; print(requests.get(sys.argv[1], headers={'Authorization': 'Bearer '+sys.argv[2]}).text)";
    // Without a proxy: the name is found at the address that stands for it.
    let found = "import socket; own=socket.getaddrinfo; socket.getaddrinfo=lambda h,*a,**k: own('127.7.0.1' if h=='api.test' else h,*a,**k); ";
    for (code, proxied) in [
        (urllib.to_owned(), true),
        (requests.to_owned(), true),
        (format!("{found}{urllib}"), false),
        (format!("{found}{requests}"), false),
    ] {
        let Some(mut command) = scene.program("python3", proxied) else { return };
        command.args(["-c", &code, &scene.url(), &scene.mark]);
        assert!(scene.works(command).contains("hello Bearer ***"), "{code}");
        scene.received(&format!("Bearer {VALUE}"));
    }
}

#[test]
fn pip() {
    let make = "import zipfile; z=zipfile.ZipFile('mock-1.0-py3-none-any.whl','w'); z.writestr('mock.py',''); \
        z.writestr('mock-1.0.dist-info/METADATA','Metadata-Version: 2.1\\nName: mock\\nVersion: 1.0\\n'); \
        z.writestr('mock-1.0.dist-info/WHEEL','Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); \
        z.writestr('mock-1.0.dist-info/RECORD',''); z.close()";
    let folder = tempfile::TempDir::new().unwrap();
    let made = Command::new("python3").args(["-c", make]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    let wheel = std::fs::read(folder.path().join("mock-1.0-py3-none-any.whl")).unwrap();
    let scene = scene(move |seen| {
        if seen.head.contains(".whl ") {
            return [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", wheel.len()).as_bytes(), &wheel].concat();
        }
        let page = "<a href=\"/files/mock-1.0-py3-none-any.whl\">mock-1.0-py3-none-any.whl</a>";
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}", page.len())
            .into_bytes()
    });
    let Some(mut command) = scene.program("python3", true) else { return };
    let index = format!("https://me:{}@api.test:{}/simple", scene.mark, scene.host.port);
    command.args([
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--disable-pip-version-check",
        "--index-url",
        &index,
        "-d",
        "got",
        "mock",
    ]);
    assert!(scene.works(command).contains("Successfully downloaded mock"));
    scene.received(&format!("Basic {}", STANDARD.encode(format!("me:{VALUE}"))));
}

#[test]
fn node() {
    let scene = scene(greet);
    let found = "const dns=require('dns'); const own=dns.lookup; dns.lookup=(h,o,c)=>own(h==='api.test'?'127.7.0.1':h,o,c); const [url,mark]=process.argv.slice(-2);";
    let fetch = "fetch(url,{headers:{authorization:'Bearer '+mark}}).then(r=>r.text()).then(console.log)";
    let https = "require('https').get(url,{headers:{authorization:'Bearer '+mark}},r=>r.pipe(process.stdout))";
    for code in [fetch, https] {
        // Node 20 knows no proxy.
        let Some(mut command) = scene.program("node", false) else { return };
        command.args(["-e", &format!("{found}{code}"), &scene.url(), &scene.mark]);
        assert!(scene.works(command).contains("hello Bearer ***"), "{code}");
        scene.received(&format!("Bearer {VALUE}"));
    }
}

#[test]
fn npm() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("package")).unwrap();
    std::fs::write(folder.path().join("package/package.json"), r#"{"name":"mock","version":"1.0.0"}"#).unwrap();
    let made = Command::new("tar").args(["czf", "mock.tgz", "package"]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    let packed = std::fs::read(folder.path().join("mock.tgz")).unwrap();
    let scene = scene(move |seen| {
        if seen.head.contains(".tgz ") {
            return [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", packed.len()).as_bytes(), &packed]
                .concat();
        }
        let at = seen.field("host").unwrap();
        text(&format!(
            r#"{{"name":"mock","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{"name":"mock","version":"1.0.0","dist":{{"tarball":"https://{at}/mock/-/mock-1.0.0.tgz"}}}}}}}}"#
        ))
    });
    let Some(mut command) = scene.program("npm", true) else { return };
    scene.write(".npmrc", &format!("//api.test:{}/:_authToken={}\n", scene.host.port, scene.mark));
    scene.write("project/package.json", r#"{"name":"own","version":"1.0.0"}"#);
    command.current_dir(scene.run.folder.path().join("project"));
    command.args(["install", "mock", "--no-audit", "--no-fund", "--no-update-notifier", "--registry", &scene.url()]);
    scene.works(command);
    assert!(scene.run.folder.path().join("project/node_modules/mock/package.json").exists());
    scene.received(&format!("Bearer {VALUE}"));
}

#[test]
fn cargo() {
    let scene = scene(|seen| match seen.head.split(' ').nth(1).unwrap_or_default() {
        "/config.json" => {
            text(&format!(r#"{{"dl":"https://{}/dl","auth-required":true}}"#, seen.field("host").unwrap()))
        }
        "/mo/ck/mock-dep" => text(&format!(
            "{{\"name\":\"mock-dep\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{}\",\"features\":{{}},\"yanked\":false}}\n",
            "0".repeat(64)
        )),
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
    });
    let Some(mut command) = scene.program("cargo", true) else { return };
    scene.write("Cargo.toml", "[package]\nname = \"own\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\nmock-dep = { version = \"1\", registry = \"mock\" }\n");
    scene.write("src/lib.rs", "");
    command.arg("generate-lockfile").env("CARGO_HOME", scene.run.folder.path().join("home"));
    command.env("CARGO_REGISTRIES_MOCK_INDEX", format!("sparse+{}/", scene.url()));
    command.env("CARGO_REGISTRIES_MOCK_TOKEN", &scene.mark);
    command.env("CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS", "cargo:token");
    scene.works(command);
    assert!(std::fs::read_to_string(scene.run.folder.path().join("Cargo.lock")).unwrap().contains("mock-dep"));
    scene.received(VALUE);
}

#[test]
fn openssl() {
    let scene = scene(greet);
    let (_, bundle, _) = scene.run.trust();
    for more in [vec!["-connect", "127.7.0.1"], vec!["-proxy", "", "-connect", "api.test"]] {
        let Some(mut command) = scene.program("openssl", false) else { return };
        command.args([
            "s_client",
            "-brief",
            "-verify_return_error",
            "-verify_hostname",
            "api.test",
            "-servername",
            "api.test",
        ]);
        command.arg("-CAfile").arg(&bundle);
        for word in more {
            match word {
                "" => command.arg(format!("127.0.0.1:{}", scene.run.proxy)),
                "127.7.0.1" | "api.test" => command.arg(format!("{word}:{}", scene.host.port)),
                option => command.arg(option),
            };
        }
        let said = scene.works(command);
        assert!(said.contains("Verification: OK") && said.contains("api.test"), "{said}");
    }
}

#[test]
fn java() {
    let scene = scene(greet);
    let Some(mut command) = scene.program("java", true) else { return };
    let (_, _, store) = scene.run.trust();
    scene.write(
        "Get.java",
        "public class Get { public static void main(String[] a) throws Exception { \
            var c = new java.net.URL(a[0]).openConnection(); c.setRequestProperty(\"Authorization\", \"Bearer \" + a[1]); \
            System.out.println(new String(c.getInputStream().readAllBytes())); \
            var k = java.security.KeyStore.getInstance(new java.io.File(a[2]), \"changeit\".toCharArray()); System.out.println(\"store \" + k.getType() + \" \" + k.size()); } }",
    );
    command.env("JAVA_TOOL_OPTIONS", java_options(scene.run.proxy, &store));
    command.args(["Get.java", &scene.url(), &scene.mark]).arg(&store);
    let said = scene.works(command);
    assert!(said.contains("hello Bearer ***") && said.to_lowercase().contains("store jks"), "{said}");
    scene.received(&format!("Bearer {VALUE}"));
}
