// The rooms of the house (see docs/architecture.md): an import goes down this list, never up.
const rooms = {
  telemetry: [],
  api: [],
  kube: ['telemetry'],
  runtime: ['kube', 'telemetry'],
  testing: ['runtime', 'kube', 'telemetry'],
  drift: ['kube', 'telemetry'],
  helm: ['kube', 'telemetry'],
  providers: ['runtime', 'kube', 'telemetry'],
  reconcilers: ['helm', 'drift', 'api', 'runtime', 'kube', 'telemetry'],
};

const roomRules = Object.entries(rooms).map(([room, below]) => ({
  name: `${room}-knows-only-the-rooms-below`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^src/', pathNot: `^src/(${[room, ...below].join('|')})/` },
}));

module.exports = {
  forbidden: [
    ...roomRules,
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'only-the-container-binds',
      comment: 'inversify composes in src/app/container.ts only',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/app/container\\.ts$|\\.test\\.ts$' },
      to: { path: 'node_modules/inversify', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'main-knows-app',
      severity: 'error',
      from: { path: '^src/main\\.ts$' },
      to: { path: '^src/', pathNot: '^src/(app|telemetry)/' },
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-dev-dependency-in-src',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.test(-support)?\\.ts$' },
      to: { dependencyTypes: ['npm-dev'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
