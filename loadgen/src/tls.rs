//! TLS by rustls: whom we trust, and which sessions we resume.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::env;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientConfig, ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    WebPkiServerVerifier, verify_server_name,
};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ALL_VERSIONS, CertificateError, DigitallySignedStruct, KeyLogFile, NamedGroup, RootCertStore,
    SignatureScheme,
};

use crate::given;
use crate::order::{Protocol, Tls, TlsVersion};

/// The identifier of HTTP/2 over TLS (RFC 9113 section 3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";
/// That of HTTP/3 (RFC 9114 section 3.1).
const ALPN_HTTP3: &[u8] = b"h3";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What a client of one origin needs; errors name the field of the order.
pub fn client_config(tls: &Tls, protocol: Protocol) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let versions = match tls.version {
        None if protocol != Protocol::Http3 => ALL_VERSIONS,
        // QUIC has no other (RFC 9001 section 4.2).
        None => &[&TLS13],
        Some(TlsVersion::V12) => &[&TLS12],
        Some(TlsVersion::V13) => &[&TLS13],
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| format!("load.tls: {error}"))?;
    let algorithms = provider.signature_verification_algorithms;
    let trusts = if tls.verify {
        let given = match &tls.ca_file {
            Some(file) => certificates("ca_file", file)?,
            None => Vec::new(),
        };
        let roots = Arc::new(trusted(tls.ca_file.as_deref(), &given)?);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| format!("load.tls: {error}"))?;
        Some(Trust { usual, given })
    } else {
        None
    };
    let remembers = protocol == Protocol::Http3;
    let verifier = Arc::new(Verifier { trusts, remembers, algorithms });
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match (&tls.certificate_file, &tls.key_file) {
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(
                certificates("certificate_file", certificate)?,
                private_key(key)?,
            )
            .map_err(|error| wrong("certificate_file", certificate, &error))?,
        _ => builder.with_no_client_auth(),
    };
    // As curl and browsers do, for whoever wants to read what was recorded on the way.
    if env::var_os("SSLKEYLOGFILE").is_some() {
        config.key_log = Arc::new(KeyLogFile::new());
    }
    let alpn = match protocol {
        Protocol::Http1 | Protocol::WebSocket => ALPN_HTTP1,
        Protocol::Http2 => ALPN_HTTP2,
        Protocol::Http3 => ALPN_HTTP3,
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

/// The same configuration with sessions of its own: sessions of one server are worth nothing at
/// another, even when both have the same name and differ in the port only.
pub fn with_own_sessions(config: &ClientConfig, resumption: bool) -> ClientConfig {
    let mut own = config.clone();
    own.resumption = match resumption {
        true => Resumption::store(Arc::new(Sessions::default())),
        false => Resumption::disabled(),
    };
    own
}

/// Whom to trust: those given in a file, or those of the system.
fn trusted(
    ca_file: Option<&Path>,
    given: &[CertificateDer<'static>],
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        None => {
            let native = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(native.certs);
        }
        Some(file) => {
            for certificate in given {
                let added = roots.add(certificate.clone());
                added.map_err(|error| wrong("ca_file", file, &error))?;
            }
        }
    }
    if roots.is_empty() {
        return Err("load.tls: this system trusts no certificate; give ca_file (--cacert), or \
                    set \"verify\": false (--tls-verify off)"
            .into());
    }
    Ok(roots)
}

/// Reads the certificates of a file, at least one.
fn certificates(field: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let content = given::read(file).map_err(|error| wrong(field, file, &error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    let read = read.map_err(|error| wrong(field, file, &error))?;
    match read.is_empty() {
        true => Err(wrong(field, file, &"has no certificate in PEM form")),
        false => Ok(read),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let content = given::read(file).map_err(|error| wrong("key_file", file, &error))?;
    PrivateKeyDer::from_pem_slice(&content).map_err(|error| wrong("key_file", file, &error))
}

fn wrong(field: &str, file: &Path, error: &dyn Display) -> String {
    format!("load.tls.{field}: {}: {error}", file.display())
}

/// Verifies as usual, but takes a certificate that was itself given as one to trust, though it is
/// an authority's: as `openssl req -x509` makes them, and as OpenSSL and browsers take them.
#[derive(Debug)]
struct Trust {
    usual: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let usual = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match usual {
            // It is found out after the dates were checked, and before the name is.
            Err(rustls::Error::InvalidCertificate(reason))
                if is_authority(&reason) && self.given.iter().any(|given| given == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }
}

/// A certificate isn't one of servers, but an authority's. The library has no name of its own for it.
pub fn is_authority(reason: &CertificateError) -> bool {
    format!("{reason:?}").contains("CaUsedAsEndEntity")
}

thread_local! {
    static VERDICT: RefCell<Option<Result<(), rustls::Error>>> = const { RefCell::new(None) };
}

/// What came of the certificate that this thread verified last: the library of QUIC hands over no
/// more than a text. None where none was, as a session was resumed.
pub fn take_verdict() -> Option<Result<(), rustls::Error>> {
    VERDICT.take()
}

/// Takes the certificates of those whom it trusts, or of anybody; only with a signature that belongs
/// to them.
#[derive(Debug)]
struct Verifier {
    /// None: anybody.
    trusts: Option<Trust>,
    /// Whether `take_verdict` is asked for what came of it.
    remembers: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict = match &self.trusts {
            Some(trust) => trust.verify(end_entity, intermediates, server_name, ocsp_response, now),
            None => Ok(ServerCertVerified::assertion()),
        };
        if self.remembers {
            VERDICT.set(Some(verdict.as_ref().map(|_| ()).map_err(Clone::clone)));
        }
        verdict
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

const MOST_TICKETS: usize = 1024;

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

/// Sessions to resume, of one server. rustls's own store keeps 8 tickets, too few for hundreds of
/// connections that are opened at once.
#[derive(Debug, Default)]
struct Sessions(Mutex<Kept>);

impl Sessions {
    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        // Every change is one step, so what is kept is whole even after a panic.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(|kept| kept.tls12 = Some(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.tls12.clone())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with(|kept| kept.tls12 = None);
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.with(|kept| {
            if kept.tls13.len() == MOST_TICKETS {
                kept.tls13.pop_front();
            }
            kept.tls13.push_back(value);
        });
    }

    /// The newest, which the server is most likely to still know.
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| kept.tls13.pop_back())
    }
}
