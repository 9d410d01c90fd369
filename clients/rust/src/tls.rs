//! TLS, for an address that begins with https.
use std::{env, error::Error, fs};

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Certificates are looked at with $POLAR_CA_FILE, else with the system's authorities; $POLAR_CERT_FILE and $POLAR_KEY_FILE
/// are shown where the mesh asks for one.
pub fn secured(endpoint: Endpoint) -> Result<Endpoint, Box<dyn Error>> {
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let mut tls = match named("POLAR_CA_FILE")? {
        Some(authority) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    match (named("POLAR_CERT_FILE")?, named("POLAR_KEY_FILE")?) {
        (Some(own), Some(key)) => tls = tls.identity(Identity::from_pem(own, key)),
        (Some(_), None) => return Err("POLAR_CERT_FILE is set, and POLAR_KEY_FILE is not".into()),
        (None, Some(_)) => return Err("POLAR_KEY_FILE is set, and POLAR_CERT_FILE is not".into()),
        (None, None) => {}
    }
    Ok(endpoint.tls_config(tls)?)
}

/// What is in the file that a variable names.
fn named(variable: &str) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
    match env::var(variable) {
        Ok(file) if !file.is_empty() => Ok(Some(fs::read(&file).map_err(|error| format!("{file}: {error}"))?)),
        _ => Ok(None),
    }
}
