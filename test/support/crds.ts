import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, RestClient } from './rest.ts';
import { eventually } from './wait.ts';

const COLLECTION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface CustomResourceDefinition extends KubeObject {
  spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] };
}

/** Applies CRD manifests (files of one or more YAML documents) and resolves when every served version answers. */
export async function installCrds(client: RestClient, files: string[]): Promise<void> {
  const documents = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).flatMap(parse);
  await Promise.all(documents.map((crd) => installCrd(client, crd)));
}

async function installCrd(client: RestClient, crd: CustomResourceDefinition): Promise<void> {
  await client.apply(`${COLLECTION}/${crd.metadata.name ?? ''}`, crd);
  const { group, names, versions } = crd.spec;
  for (const version of versions.filter(({ served }) => served)) {
    const path = `/apis/${group}/${version.name}/${names.plural}`;
    await eventually(() => client.list(path), { what: `${path} is served` });
  }
}

function parse(text: string): CustomResourceDefinition[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as CustomResourceDefinition | null)
    .filter((object) => object !== null)
    .filter((object) => object.kind === 'CustomResourceDefinition');
}
