package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// overHTTP2 speaks gRPC, with TLS to https:// alone; wide windows keep large messages moving.
func overHTTP2() (*http.Client, error) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(true)
	windows := &http.HTTP2Config{MaxReceiveBufferPerStream: 4 << 20, MaxReceiveBufferPerConnection: 16 << 20}
	security, err := certificates()
	return &http.Client{Transport: &http.Transport{Protocols: protocols, HTTP2: windows, TLSClientConfig: security}}, err
}

// certificates are looked at with POLAR_CA_FILE, else with the system's authorities; POLAR_CERT_FILE and POLAR_KEY_FILE are
// shown where the mesh asks for one.
func certificates() (*tls.Config, error) {
	config := new(tls.Config)
	if file := os.Getenv("POLAR_CA_FILE"); file != "" {
		authority, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("POLAR_CA_FILE: there is no certificate in %s", file)
		}
	}
	certificate, key := os.Getenv("POLAR_CERT_FILE"), os.Getenv("POLAR_KEY_FILE")
	switch {
	case certificate == "" && key == "":
		return config, nil
	case key == "":
		return nil, errors.New("POLAR_CERT_FILE is set, and POLAR_KEY_FILE is not")
	case certificate == "":
		return nil, errors.New("POLAR_KEY_FILE is set, and POLAR_CERT_FILE is not")
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	config.Certificates = []tls.Certificate{own}
	return config, err
}
