// @peculiar/x509 resolves its parts through tsyringe, which wants this polyfill loaded first.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** Test support: a certificate authority in memory. */
export interface Pem {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;

export class TestAuthority {
  readonly ca: string;
  readonly #root: x509.X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(root: x509.X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.ca = root.toString('pem');
    this.#root = root;
    this.#keys = keys;
  }

  static async create(): Promise<TestAuthority> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const root = await x509.X509CertificateGenerator.createSelfSigned({
      name: 'CN=test authority',
      keys,
      signingAlgorithm: ALGORITHM,
      ...lifetime(),
      extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
    });
    return new TestAuthority(root, keys);
  }

  /** A certificate for 127.0.0.1 and localhost, good for servers and clients. */
  async issue(commonName: string): Promise<Pem> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const leaf = await x509.X509CertificateGenerator.create({
      subject: `CN=${commonName}`,
      issuer: this.#root.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
      ...lifetime(),
      extensions: [
        new x509.SubjectAlternativeNameExtension([
          { type: 'ip', value: '127.0.0.1' },
          { type: 'dns', value: 'localhost' },
          { type: 'dns', value: 'kubernetes.test' },
        ]),
      ],
    });
    const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
    return { cert: leaf.toString('pem'), key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n` };
  }
}

function lifetime(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + HOUR_MS) };
}
