//! Certificates that OpenSSL makes: which may sign, and why each other may not.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use writ_core::Timestamp;
use writ_evidence::signer::x509::{Certified, Chain, Root, X509Error};

const LEAF: &str =
    "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n";
const CA: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
const P256: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
const DAY: i64 = 86_400_000;

/// A folder in which OpenSSL makes certificates.
struct Office(TempDir);

impl Office {
    fn new() -> Self {
        let office = Self(tempfile::tempdir().unwrap());
        office.issue("root", "/C=NL/O=Example/CN=Root", CA, None, P256);
        office
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, args: &[&str]) {
        let out = Command::new("openssl").current_dir(self.0.path()).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A key and a certificate for it, ten days long, by `by` or by itself.
    fn issue(&self, name: &str, subject: &str, extensions: &str, by: Option<&str>, kind: &[&str]) {
        let (key, ask, made) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let file = format!("{name}.ext");
        fs::write(self.path(&file), extensions).unwrap();
        self.openssl(&[&["genpkey", "-out", &key], kind].concat());
        self.openssl(&["req", "-new", "-key", &key, "-subj", subject, "-out", &ask]);
        let signer = by.map(|by| (format!("{by}.pem"), format!("{by}.key")));
        let by = match &signer {
            Some((certificate, key)) => vec!["-CA", certificate.as_str(), "-CAkey", key.as_str(), "-CAcreateserial"],
            None => vec!["-signkey", &key],
        };
        let rest = ["x509", "-req", "-in", &ask, "-days", "10", "-extfile", &file, "-out", &made];
        self.openssl(&[&rest[..], &by].concat());
    }

    fn pem(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(&format!("{name}.pem"))).unwrap()
    }

    fn root(&self, name: &str) -> Root {
        Root::from_pem(&String::from_utf8(self.pem(name)).unwrap()).unwrap()
    }

    fn chain(&self, names: &[&str]) -> Chain {
        let texts: Vec<Vec<u8>> = names.iter().map(|name| self.pem(name)).collect();
        Chain::from_pem(texts.iter().map(Vec::as_slice)).unwrap()
    }

    /// A signature of `m` by a certificate's key.
    fn sign(&self, name: &str, how: &[&str]) -> Vec<u8> {
        fs::write(self.path("m"), "m").unwrap();
        let key = format!("{name}.key");
        self.openssl(&[&["dgst", "-sha256", "-sign", &key, "-out", "sig"], how, &["m"]].concat());
        fs::read(self.path("sig")).unwrap()
    }

    /// What becomes of a good signature by the first of `names`, under the root, `days` from now.
    fn check(&self, names: &[&str], days: i64) -> Result<Certified, X509Error> {
        let at = Timestamp::from_millis(Timestamp::now().millis() + days * DAY);
        self.chain(names).verify(&[self.root("root")], b"m", &self.sign(names.first().unwrap(), &[]), at)
    }

    /// The same of a certificate with these extensions.
    fn leaf(&self, extensions: &str) -> Result<Certified, X509Error> {
        self.issue("one", "/O=Example/CN=one", extensions, Some("root"), P256);
        self.check(&["one"], 1)
    }
}

#[test]
fn a_code_signer_is_told_by_its_whole_name() {
    let office = Office::new();
    let said = office.leaf(LEAF).unwrap();
    assert_eq!(
        (said.subject.to_string(), said.issuer.to_string()),
        ("CN=one,O=Example".into(), "CN=Root,O=Example,C=NL".into())
    );
    assert_eq!(said.root, office.root("root").id());
    // No word on what it is for beside signing: any.
    assert!(office.leaf("basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n").is_ok());
}

#[test]
fn a_certificate_for_something_else_signs_nothing() {
    let office = Office::new();
    let usage = |usage: &str| format!("basicConstraints=CA:FALSE\n{usage}");
    assert!(matches!(office.leaf(&usage("")), Err(X509Error::NotForSignatures { .. })));
    assert!(matches!(office.leaf(&usage("keyUsage=keyEncipherment\n")), Err(X509Error::NotForSignatures { .. })));
    let tls = usage("keyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n");
    assert!(matches!(office.leaf(&tls), Err(X509Error::NotForCode { .. })));
    let ca = format!("{CA}extendedKeyUsage=codeSigning\n").replace("keyCertSign", "keyCertSign,digitalSignature");
    assert!(matches!(office.leaf(&ca), Err(X509Error::Authority { .. })));
    let unknown = format!("{LEAF}1.2.3.4.5=critical,ASN1:NULL\n");
    assert!(matches!(office.leaf(&unknown), Err(X509Error::Path { .. })));
}

#[test]
fn it_counts_when_it_is_checked() {
    let office = Office::new();
    office.issue("one", "/CN=one", LEAF, Some("root"), P256);
    assert!(office.check(&["one"], 9).is_ok());
    assert!(matches!(office.check(&["one"], 11), Err(X509Error::Expired { .. })));
    assert!(matches!(office.check(&["one"], -1), Err(X509Error::NotYetValid { .. })));
    assert!(matches!(office.check(&["one"], -40_000), Err(X509Error::NotYetValid { .. })), "before 1970");
    // A root whose time is over vouches for nobody, though its signer's is not.
    office.issue("late", "/CN=late", LEAF, Some("root"), P256);
    office.openssl(&[
        "x509", "-req", "-in", "late.csr", "-days", "99", "-extfile", "late.ext", "-CA", "root.pem", "-CAkey",
        "root.key", "-out", "late.pem",
    ]);
    assert!(office.check(&["late"], 9).is_ok());
    assert!(matches!(office.check(&["late"], 11), Err(X509Error::Expired { .. })));
}

#[test]
fn only_a_path_to_a_trusted_root_counts() {
    let office = Office::new();
    office.issue("middle", "/O=Example/CN=Middle", CA, Some("root"), P256);
    office.issue("one", "/CN=one", LEAF, Some("middle"), P256);
    let said = office.check(&["one", "middle"], 1).unwrap();
    assert_eq!((said.issuer.to_string(), said.root), ("CN=Middle,O=Example".into(), office.root("root").id()));
    assert!(matches!(office.check(&["one"], 1), Err(X509Error::UnknownIssuer { .. })), "the middle is missing");
    // The same names, another authority.
    let other = Office::new();
    other.issue("one", "/CN=one", LEAF, Some("root"), P256);
    fs::copy(other.path("one.pem"), office.path("stolen.pem")).unwrap();
    fs::copy(other.path("one.key"), office.path("stolen.key")).unwrap();
    let stolen = office.check(&["stolen"], 1);
    assert!(matches!(stolen, Err(X509Error::UnknownIssuer { .. } | X509Error::Path { .. })), "{stolen:?}");
    // By itself.
    office.issue("self", "/CN=self", LEAF, None, P256);
    assert!(matches!(office.check(&["self"], 1), Err(X509Error::UnknownIssuer { .. })));
    let signed = office.chain(&["one", "middle"]).verify(&[], b"m", &office.sign("one", &[]), Timestamp::now());
    assert!(matches!(signed, Err(X509Error::UnknownIssuer { .. })), "no roots, no trust");
}

#[test]
fn who_may_not_sign_certificates_makes_no_signer() {
    let office = Office::new();
    office.issue("fake", "/CN=Fake", LEAF, Some("root"), P256);
    office.issue("one", "/CN=one", LEAF, Some("fake"), P256);
    assert!(matches!(office.check(&["one", "fake"], 1), Err(X509Error::IssuerIsNone { .. })));
    let no_sign = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,cRLSign\n";
    office.issue("crl", "/CN=Crl", no_sign, Some("root"), P256);
    office.issue("two", "/CN=two", LEAF, Some("crl"), P256);
    assert!(matches!(office.check(&["two", "crl"], 1), Err(X509Error::IssuerIsNone { .. })));
    let short = "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=keyCertSign\n";
    office.issue("short", "/CN=Short", short, Some("root"), P256);
    office.issue("below", "/CN=Below", CA, Some("short"), P256);
    office.issue("three", "/CN=three", LEAF, Some("below"), P256);
    assert!(matches!(office.check(&["three", "below", "short"], 1), Err(X509Error::IssuerIsNone { .. })));
    // What a root says of itself holds too.
    office.issue("lone", "/CN=Lone", short, None, P256);
    office.issue("under", "/CN=Under", CA, Some("lone"), P256);
    let at = |name: &str, by: &str| {
        office.issue(name, &format!("/CN={name}"), LEAF, Some(by), P256);
        let chain = office.chain(&[name, "under"]);
        chain.verify(&[office.root("lone")], b"m", &office.sign(name, &[]), Timestamp::now())
    };
    assert!(at("direct", "lone").is_ok());
    assert!(matches!(at("indirect", "under"), Err(X509Error::IssuerIsNone { .. })));
    let tls = format!("{CA}extendedKeyUsage=serverAuth\n");
    office.issue("tls", "/CN=Tls", &tls, Some("root"), P256);
    office.issue("four", "/CN=four", LEAF, Some("tls"), P256);
    assert!(matches!(office.check(&["four", "tls"], 1), Err(X509Error::NotForCode { .. })));
}

#[test]
fn names_outside_of_an_authoritys_constraints_are_refused() {
    let office = Office::new();
    let narrow = format!("{CA}nameConstraints=critical,permitted;DNS:example.org\n");
    office.issue("narrow", "/CN=Narrow", &narrow, Some("root"), P256);
    let named = |name: &str| format!("{LEAF}subjectAltName=DNS:{name}\n");
    office.issue("good", "/CN=good", &named("build.example.org"), Some("narrow"), P256);
    assert!(office.check(&["good", "narrow"], 1).is_ok());
    office.issue("bad", "/CN=bad", &named("build.example.com"), Some("narrow"), P256);
    assert!(matches!(office.check(&["bad", "narrow"], 1), Err(X509Error::NameConstraint { .. })));
    // Constraints on distinguished names are refused as a whole: nothing here checks them.
    let folder = format!("{CA}nameConstraints=critical,permitted;dirName:dn\n[dn]\nO=Example\n");
    office.issue("dn", "/CN=Dn", &folder, Some("root"), P256);
    office.issue("in", "/O=Example/CN=in", LEAF, Some("dn"), P256);
    assert!(matches!(office.check(&["in", "dn"], 1), Err(X509Error::NameConstraint { .. })));
}

#[test]
fn chains_in_circles_and_long_ones_end() {
    let office = Office::new();
    // Two authorities that vouch for each other, and neither for a root.
    office.issue("a", "/CN=A", CA, None, P256);
    office.issue("b", "/CN=B", CA, Some("a"), P256);
    office.openssl(&[
        "x509",
        "-req",
        "-in",
        "a.csr",
        "-days",
        "10",
        "-extfile",
        "a.ext",
        "-CA",
        "b.pem",
        "-CAkey",
        "b.key",
        "-CAcreateserial",
        "-out",
        "a.pem",
    ]);
    office.issue("one", "/CN=one", LEAF, Some("a"), P256);
    let looped = office.check(&["one", "a", "b"], 1);
    assert!(matches!(looped, Err(X509Error::UnknownIssuer { .. } | X509Error::TooDeep { .. })), "{looped:?}");
    // Each one vouched for by the one before it.
    let mut above = "root".to_owned();
    let mut names = Vec::new();
    for at in 0..8 {
        let name = format!("c{at}");
        office.issue(&name, &format!("/CN={name}"), CA, Some(&above), P256);
        names.insert(0, name.clone());
        above = name;
    }
    office.issue("end", "/CN=end", LEAF, Some(&above), P256);
    names.insert(0, "end".to_owned());
    let texts: Vec<Vec<u8>> = names.iter().map(|name| office.pem(name)).collect();
    assert_eq!(Chain::from_pem(texts.iter().map(Vec::as_slice)).unwrap_err(), X509Error::TooLarge);
    let names: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let cut = office.check(&names, 1);
    assert!(matches!(cut, Err(X509Error::UnknownIssuer { .. } | X509Error::TooDeep { .. })), "{cut:?}");
    let huge = office.pem("one").repeat(1000);
    assert_eq!(Chain::from_pem([huge.as_slice()]).unwrap_err(), X509Error::TooLarge);
}

#[test]
fn every_kind_of_key_signs() {
    let office = Office::new();
    let kinds: [(&str, &[&str], &[&str]); 4] = [
        ("p256", P256, &[]),
        ("p384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], &[]),
        ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], &[]),
        ("pss", &["-algorithm", "RSA"], &["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1"]),
    ];
    let roots = [office.root("root")];
    for (name, kind, how) in kinds {
        office.issue(name, &format!("/CN={name}"), LEAF, Some("root"), kind);
        let (chain, signature) = (office.chain(&[name]), office.sign(name, how));
        let now = Timestamp::now();
        assert!(chain.verify(&roots, b"m", &signature, now).is_ok(), "{name}");
        assert!(matches!(chain.verify(&roots, b"n", &signature, now), Err(X509Error::Signature { .. })), "{name}");
        let mut bent = signature;
        let last = bent.len() - 1;
        bent[last] ^= 1;
        assert!(matches!(chain.verify(&roots, b"m", &bent, now), Err(X509Error::Signature { .. })), "{name}");
    }
    office.issue("ed", "/CN=ed", LEAF, Some("root"), &["-algorithm", "ED25519"]);
    fs::write(office.path("m"), "m").unwrap();
    office.openssl(&["pkeyutl", "-sign", "-rawin", "-inkey", "ed.key", "-in", "m", "-out", "sig"]);
    let signature = fs::read(office.path("sig")).unwrap();
    assert!(office.chain(&["ed"]).verify(&roots, b"m", &signature, Timestamp::now()).is_ok());
    // A weak key is none, whoever vouches for it.
    office.issue("weak", "/CN=weak", LEAF, Some("root"), &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]);
    assert!(matches!(office.check(&["weak"], 1), Err(X509Error::Signature { .. })));
}

#[test]
fn a_root_is_an_authority() {
    let office = Office::new();
    office.issue("leaf", "/CN=leaf", LEAF, None, P256);
    let leaf = String::from_utf8(office.pem("leaf")).unwrap();
    assert!(matches!(Root::from_pem(&leaf), Err(X509Error::NotAnAuthority(_))));
    let root = String::from_utf8(office.pem("root")).unwrap();
    for bad in ["", "x", &root.repeat(2), &root.replace("CERTIFICATE", "PUBLIC KEY"), &root.replacen('M', "N", 1)] {
        assert!(Root::from_pem(bad).is_err(), "{bad}");
    }
}

/// Every byte of a signer's certificate and of the one above it, changed: it does not panic and does not hold.
#[test]
fn every_byte_of_a_chain_counts() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let office = Office::new();
    office.issue("middle", "/CN=Middle", CA, Some("root"), P256);
    office.issue("one", "/CN=one", LEAF, Some("middle"), P256);
    let (roots, signature, now) = ([office.root("root")], office.sign("one", &[]), Timestamp::now());
    let der = |name: &str| {
        let text = String::from_utf8(office.pem(name)).unwrap();
        STANDARD.decode(text.lines().filter(|line| !line.starts_with('-')).collect::<String>()).unwrap()
    };
    let pem = |der: &[u8]| {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der)).into_bytes()
    };
    let (leaf, middle) = (der("one"), der("middle"));
    let holds = |leaf: &[u8], middle: &[u8]| {
        let chain = Chain::from_pem([pem(leaf).as_slice(), pem(middle).as_slice()]);
        chain.and_then(|chain| chain.verify(&roots, b"m", &signature, now)).is_ok()
    };
    assert!(holds(&leaf, &middle));
    for bit in [0x01, 0x80] {
        for at in 0..leaf.len() {
            let mut bent = leaf.clone();
            bent[at] ^= bit;
            assert!(!holds(&bent, &middle), "byte {at} of the signer's");
        }
        for at in 0..middle.len() {
            let mut bent = middle.clone();
            bent[at] ^= bit;
            assert!(!holds(&leaf, &bent), "byte {at} of the authority's");
        }
    }
}
