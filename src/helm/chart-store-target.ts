import { createHmac } from 'node:crypto';
import { findLogin } from './docker-config.ts';
import { HelmError } from './errors.ts';
import { describeUrl } from './chart-store-http.ts';
import type { Trust } from './chart-store-http.ts';
import type { RegistryLogin } from './docker-config.ts';
import type { ChartSource } from './types.ts';

/** A repository as one holder of credentials sees it. */
export interface RepositoryTarget {
  readonly kind: 'http' | 'oci';
  /** https: or http:, without user, password and fragment; for oci the registry's https: address with the path of the charts. */
  readonly url: URL;
  /** Equal for the same address, whatever the credentials. */
  readonly address: string;
  /** Differs by address and by credentials, of which it tells nothing: what one may see, another may not. */
  readonly key: string;
  readonly trust: Trust;
  /** The login for a host (with port) and a path, if the credentials have one. */
  login(url: URL): RegistryLogin | undefined;
}

/** One chart of it. */
export interface ChartQuery {
  readonly target: RepositoryTarget;
  readonly chartName: string;
  /** '' is the latest stable one. */
  readonly version: string;
}

/** Where a chart is that was found. */
export interface LocatedChart {
  /** As the repository writes it. */
  readonly version: string;
  /** sha256:… of the archive, where the repository tells it. */
  readonly digest?: string;
  readonly url: URL;
}

/** What the store needs of a kind of repository. */
export interface RepositoryClient {
  /** Resolves a version or range. `suspect`: this earlier answer led nowhere, ask anew unless that was just done. */
  locate(query: ChartQuery, signal: AbortSignal, suspect?: LocatedChart): Promise<LocatedChart>;
  /** The digest of an exact version as far as it is known without a request. */
  knownDigest(query: ChartQuery): string | undefined;
  /** Streams the archive into `write`, from its beginning again at each attempt. */
  download(query: ChartQuery, chart: LocatedChart, run: DownloadRun): Promise<void>;
  close(): Promise<void>;
}

export interface DownloadRun {
  readonly signal: AbortSignal;
  readonly write: (chunks: AsyncIterable<Buffer>) => Promise<void>;
}

/** Throws HelmError RepositoryInvalid or CredentialsInvalid. `secret` keys the fingerprint of the credentials. */
export function readTarget(source: ChartSource, secret: Uint8Array): RepositoryTarget {
  const { access } = source;
  const given = URL.parse(source.repoURL);
  if (given === null) throw new HelmError('RepositoryInvalid', 'repoURL is no URL');
  const kind = kindOf(given);
  // URL treats oci: as a scheme it knows nothing of; https: gives it host and port as HTTP has them.
  const url = URL.parse(kind === 'oci' ? given.href.replace(/^oci:/i, 'https:') : given.href);
  if (url === null || url.hostname === '') throw new HelmError('RepositoryInvalid', 'repoURL must include a host');
  const inline = { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  url.username = '';
  url.password = '';
  url.hash = '';
  const address = `${kind}+${url.href.replace(/\/+$/, '')}`;
  const own = ownLogin(access, inline);
  const rights = [
    own.username,
    own.password,
    access.dockerConfigJson,
    access.ca,
    access.insecureSkipTLSVerify === true,
  ];
  const fingerprint = createHmac('sha256', secret).update(JSON.stringify(rights)).digest('hex');
  return {
    kind,
    url,
    address,
    key: `${address} ${fingerprint}`,
    trust: { home: url.hostname, ca: access.ca, insecureSkipTLSVerify: access.insecureSkipTLSVerify },
    login: (at) => loginFor(at, url, { own, dockerConfigJson: access.dockerConfigJson }),
  };
}

function kindOf(url: URL): 'http' | 'oci' {
  if (url.protocol === 'oci:') return 'oci';
  if (url.protocol === 'https:' || url.protocol === 'http:') return 'http';
  throw new HelmError(
    'RepositoryInvalid',
    `repoURL has the scheme ${url.protocol.slice(0, -1)}; https and oci are supported`,
  );
}

function ownLogin(access: ChartSource['access'], inline: { username: string; password: string }): RegistryLogin {
  if (access.username !== undefined) return { username: access.username, password: access.password ?? '' };
  return inline.username === '' ? {} : inline;
}

/**
 * Credentials go to the repository's own host over its own scheme, as Helm does it unless told to pass them on; a Docker
 * config may name further hosts, which get what it says for them, over TLS.
 */
function loginFor(
  at: URL,
  repository: URL,
  access: { readonly own: RegistryLogin; readonly dockerConfigJson?: string },
): RegistryLogin | undefined {
  const home = at.host === repository.host && at.protocol === repository.protocol;
  if (home && access.own.username !== undefined) return access.own;
  if (access.dockerConfigJson === undefined || (!home && at.protocol !== 'https:')) return undefined;
  return findLogin(access.dockerConfigJson, at.host, home ? repository.pathname : at.pathname);
}

export function basicHeader(login: RegistryLogin): string | undefined {
  if (login.username === undefined) return undefined;
  return `Basic ${Buffer.from(`${login.username}:${login.password ?? ''}`).toString('base64')}`;
}

/** 'chart "x" version "1.2" of https://…', for errors. */
export function describeQuery({ target, chartName, version }: ChartQuery): string {
  const where = target.kind === 'oci' ? describeUrl(target.url).replace(/^https:/, 'oci:') : describeUrl(target.url);
  return `chart ${JSON.stringify(chartName)}${version === '' ? '' : ` version ${JSON.stringify(version)}`} of ${where}`;
}

/** Versions that an error lists. */
const LISTED_VERSIONS = 5;

/** No version was asked for where `wanted` is '': then all there are are pre-releases, which have to be named. */
export function noSuchVersion(newest: readonly string[], wanted: string): HelmError {
  const few = newest.slice(0, LISTED_VERSIONS);
  const text =
    few.length === 0
      ? 'there is none'
      : `available versions: ${few.join(', ')}${newest.length > few.length ? ', …' : ''}`;
  return new HelmError('VersionNotFound', `${wanted === '' ? 'no stable version' : 'no such version'}; ${text}`);
}
