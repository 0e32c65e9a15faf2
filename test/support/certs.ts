// @peculiar/x509 resolves its parts through tsyringe, which wants this polyfill loaded first.
import 'reflect-metadata';
import { createPrivateKey, generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}

/** What a leaf certificate says. A server one gets 127.0.0.1 and localhost as names. */
export interface LeafOptions {
  commonName: string;
  usage: 'server' | 'client';
  /** Kubernetes takes these as the user's groups. */
  organizations?: string[];
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 24 * 60 * 60_000;

/** A private certificate authority that lives as long as the test. */
export class CertificateAuthority {
  /** PEM, as clients want it. */
  readonly certificate: string;
  readonly #root: x509.X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(root: x509.X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#root = root;
    this.#keys = keys;
    this.certificate = pem(root);
  }

  static async create(commonName: string): Promise<CertificateAuthority> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const root = await x509.X509CertificateGenerator.createSelfSigned({
      ...validity(),
      name: `CN=${commonName}`,
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new CertificateAuthority(root, keys);
  }

  /** Signs a new key pair. */
  async issue(options: LeafOptions): Promise<KeyPair> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const organizations = (options.organizations ?? []).map((organization) => `O=${organization}`);
    const certificate = await x509.X509CertificateGenerator.create({
      ...validity(),
      subject: [`CN=${options.commonName}`, ...organizations].join(', '),
      issuer: this.#root.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: await this.#leafExtensions(options.usage, keys.publicKey),
    });
    const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { certificate: pem(certificate), key: privateKeyPem(Buffer.from(key)) };
  }

  async #leafExtensions(usage: LeafOptions['usage'], publicKey: webcrypto.CryptoKey): Promise<x509.Extension[]> {
    const purpose = usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth;
    const names = new x509.SubjectAlternativeNameExtension([
      { type: 'ip', value: '127.0.0.1' },
      { type: 'dns', value: 'localhost' },
    ]);
    return [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([purpose]),
      await x509.AuthorityKeyIdentifierExtension.create(this.#root.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      ...(usage === 'server' ? [names] : []),
    ];
  }
}

/** A key pair without certificate, PEM; the API server signs and checks service-account tokens with one. */
export function signingKeys(): { privateKey: string; publicKey: string } {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
}

function validity(): { serialNumber: string; notBefore: Date; notAfter: Date } {
  // RFC 5280 §4.1.2.2: a positive integer of at most 20 octets; the leading 0x01 keeps it positive.
  const serialNumber = `01${randomBytes(15).toString('hex')}`;
  return { serialNumber, notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 7 * DAY_MS) };
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trimEnd()}\n`;
}

function privateKeyPem(der: Buffer): string {
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}
