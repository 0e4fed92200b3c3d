/** Ends the services that global-setup.ts started. Jest calls it once per project, after all projects have run. */
async function globalTeardown(): Promise<void> {
  const run = globalThis.rialtoTestRun;
  globalThis.rialtoTestRun = undefined;
  await (
    await run
  )?.();
}

export { globalTeardown as default };
