//! TLS by rustls, sans-io: what verifies a server, and a link that wraps and unwraps bytes.

use crate::endpoint::{Endpoint, SslMode};
use crate::error::ProtocolError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha2::Digest;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A ready client configuration; cheap to clone.
#[derive(Clone)]
pub struct TlsSettings {
    config: Arc<ClientConfig>,
}

impl TlsSettings {
    /// Reads the files that `mode` needs: the trusted roots (for verify-ca and verify-full, and for require where a
    /// root file exists, as libpq does) and the client's own certificate and key, where given.
    pub fn load(
        mode: SslMode,
        root_cert: Option<&Path>,
        client: Option<(&Path, &Path)>,
    ) -> Result<TlsSettings, ProtocolError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verify = match (mode, root_cert) {
            (SslMode::VerifyCa | SslMode::VerifyFull, None) => {
                return Err(ProtocolError::Tls(
                    "sslmode verify-ca and verify-full need a root certificate; give sslrootcert=FILE (or put the \
                     file at ~/.postgresql/root.crt), or use sslmode=require to go without verification"
                        .into(),
                ));
            }
            (SslMode::VerifyFull, Some(_)) => Verify::Full,
            (SslMode::VerifyCa | SslMode::Require, Some(_)) => Verify::Chain,
            _ => Verify::Nothing,
        };
        let roots = match root_cert {
            Some(path) => certificates(path)?,
            None => Vec::new(),
        };
        let verifier = Verifier::new(verify, roots, provider.clone())?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| ProtocolError::Tls(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match client {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let key_der =
                    PrivateKeyDer::from_pem_file(key).map_err(|e| unreadable("private key", key, &e.to_string()))?;
                builder
                    .with_client_auth_cert(certificates(cert)?, key_der)
                    .map_err(|e| ProtocolError::Tls(format!("client certificate {}: {e}", cert.display())))?
            }
        };
        Ok(TlsSettings { config: Arc::new(config) })
    }

    /// Begins TLS with the server at `endpoint`.
    pub fn connect(&self, endpoint: &Endpoint) -> Result<Box<ClientConnection>, ProtocolError> {
        let host = match endpoint {
            Endpoint::Tcp { host, .. } => host.clone(),
            Endpoint::Unix(_) => "localhost".into(),
        };
        let name = ServerName::try_from(host.clone()).map_err(|_| {
            ProtocolError::Tls(format!("\"{host}\" is no name that a certificate can be checked against"))
        })?;
        let mut conn =
            ClientConnection::new(self.config.clone(), name).map_err(|e| ProtocolError::Tls(e.to_string()))?;
        // Plain text is passed on at once; nothing needs to be held back.
        conn.set_buffer_limit(None);
        Ok(Box::new(conn))
    }
}

fn unreadable(what: &str, path: &Path, why: &str) -> ProtocolError {
    ProtocolError::Tls(format!("cannot read the {what} {}: {why}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ProtocolError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|e| unreadable("certificate", path, &e.to_string()))?.collect();
    let found = found.map_err(|e| unreadable("certificate", path, &e.to_string()))?;
    if found.is_empty() {
        return Err(unreadable("certificate", path, "it holds no PEM certificate"));
    }
    Ok(found)
}

/// libpq's default place of the trusted roots, where that file exists.
pub fn default_root_cert(home: Option<PathBuf>) -> Option<PathBuf> {
    home.map(|h| h.join(".postgresql/root.crt")).filter(|p| p.exists())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verify {
    Nothing,
    Chain,
    Full,
}

/// Checks as much of a server's certificate as `sslmode` asks for.
#[derive(Debug)]
struct Verifier {
    verify: Verify,
    roots: Vec<CertificateDer<'static>>,
    webpki: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        verify: Verify,
        roots: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, ProtocolError> {
        let webpki = if verify == Verify::Nothing {
            None
        } else {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots.iter().cloned());
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build();
            Some(built.map_err(|e| ProtocolError::Tls(format!("the root certificate cannot be used: {e}")))?)
        };
        Ok(Verifier { verify, roots, webpki, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(webpki) = &self.webpki else { return Ok(ServerCertVerified::assertion()) };
        // A self-signed server certificate that is itself the trusted root is common with PostgreSQL; OpenSSL takes
        // it, WebPKI rejects it for being a CA. Being trusted byte by byte, it needs its name checked and no more.
        if self.roots.iter().any(|root| root.as_ref() == end_entity.as_ref()) {
            check_validity(end_entity, now)?;
            if self.verify == Verify::Full {
                let parsed = rustls::server::ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.verify == Verify::Chain => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Layer between the bytes of the protocol and the bytes of the socket.
#[derive(Default)]
pub enum Link {
    /// Nothing.
    #[default]
    Plain,
    /// TLS.
    Tls(Box<ClientConnection>),
}

impl Link {
    /// Returns true if bytes can pass directly to and from the socket.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self, Link::Plain)
    }

    /// Appends to `wire` what must be sent so that the server reads `plain`.
    pub fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match self {
            Link::Plain => wire.extend_from_slice(plain),
            Link::Tls(conn) => {
                conn.writer().write_all(plain).map_err(|e| ProtocolError::Tls(e.to_string()))?;
                flush(conn, wire)?;
            }
        }
        Ok(())
    }

    /// Appends to `plain` what the server said in `wire`, and to `reply` what TLS itself wants to send.
    pub fn open(&mut self, mut wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let Link::Tls(conn) = self else {
            plain.extend_from_slice(wire);
            return Ok(());
        };
        loop {
            if !wire.is_empty() {
                let read = conn.read_tls(&mut wire).map_err(|e| ProtocolError::Tls(e.to_string()))?;
                if read == 0 {
                    // Behind TLS's own goodbye nothing is read any more.
                    return Ok(());
                }
            }
            let state = conn.process_new_packets().map_err(|e| explain(&e));
            // An alert that tells the server why must go out even when we give up.
            flush(conn, reply)?;
            let mut pending = state?.plaintext_bytes_to_read();
            while pending > 0 {
                let from = plain.len();
                plain.resize(from + pending, 0);
                let n = conn.reader().read(&mut plain[from..]).map_err(|e| ProtocolError::Tls(e.to_string()))?;
                plain.truncate(from + n);
                if n == 0 {
                    break;
                }
                pending -= n;
            }
            if wire.is_empty() {
                return Ok(());
            }
        }
    }

    /// RFC 5929's tls-server-end-point: the server certificate's hash by its own signature's hash algorithm.
    pub fn server_end_point(&self) -> Option<Vec<u8>> {
        let Link::Tls(conn) = self else { return None };
        end_point_hash(conn.peer_certificates()?.first()?.as_ref())
    }
}

fn flush(conn: &mut ClientConnection, wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
    while conn.wants_write() {
        conn.write_tls(wire).map_err(|e| ProtocolError::Tls(e.to_string()))?;
    }
    Ok(())
}

fn explain(error: &rustls::Error) -> ProtocolError {
    let remedy = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "; no root in sslrootcert has signed it. Is it the right file?"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; connect by a name that the certificate holds, or use sslmode=verify-ca",
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "; renew it, or use sslmode=require to go without verification"
        }
        _ => "",
    };
    ProtocolError::Tls(format!("the server's certificate does not verify or TLS failed: {error}{remedy}"))
}

/// Not before its time, not after it.
fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    use x509_cert::der::Decode;
    let bad = |e| Err(rustls::Error::InvalidCertificate(e));
    let Ok(cert) = x509_cert::Certificate::from_der(certificate.as_ref()) else {
        return bad(CertificateError::BadEncoding);
    };
    let validity = cert.tbs_certificate.validity;
    match now.as_secs() {
        t if t < validity.not_before.to_unix_duration().as_secs() => bad(CertificateError::NotValidYet),
        t if t > validity.not_after.to_unix_duration().as_secs() => bad(CertificateError::Expired),
        _ => Ok(()),
    }
}

fn end_point_hash(der: &[u8]) -> Option<Vec<u8>> {
    use x509_cert::der::Decode;
    let cert = x509_cert::Certificate::from_der(der).ok()?;
    // MD5 and SHA-1 are replaced by SHA-256, says the RFC; Ed25519 and the like name no hash and get no binding.
    Some(match cert.signature_algorithm.oid.to_string().as_str() {
        // sha384WithRSAEncryption, ecdsa-with-SHA384
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => sha2::Sha384::digest(der).to_vec(),
        // sha512WithRSAEncryption, ecdsa-with-SHA512
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => sha2::Sha512::digest(der).to_vec(),
        // md5, sha1 and sha256 with RSA; ecdsa with SHA1 and SHA256
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => sha2::Sha256::digest(der).to_vec(),
        _ => return None,
    })
}
