/** Ends what global-setup.ts began; called once per project, after all of them. */
async function globalTeardown(): Promise<void> {
  const run = globalThis.rialtoTestRun;
  globalThis.rialtoTestRun = undefined;
  await (
    await run
  )?.();
}

export { globalTeardown as default };
