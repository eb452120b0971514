//! Certificates made for a test.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

/// An authority, and what it issued.
pub struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
pub struct Issued {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority::keeping(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn keeping(issuer: CertifiedIssuer<'static, KeyPair>) -> Authority {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("a file");
        Authority { folder, issuer }
    }

    /// The authority's certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A certificate for a name or an address.
    pub fn issue(&self, name: &str) -> Issued {
        self.issue_with(name, |_| {})
    }

    pub fn issue_expired(&self, name: &str) -> Issued {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    /// A certificate that signed itself and is an authority's, as `openssl req -x509` makes them;
    /// it is the one to trust.
    pub fn self_signed(name: &str, is_expired: bool) -> (Authority, Issued) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        if is_expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let key = issuer.key();
        let issued = Issued {
            certificate: issuer.der().clone(),
            certificate_pem: issuer.pem(),
            key_pem: key.serialize_pem(),
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        };
        (Authority::keeping(issuer), issued)
    }

    fn issue_with(&self, name: &str, change: impl Fn(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        }
    }
}
