import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/**
 * The environment `node` of Jest with a global object of its own in place of a proxy, which would answer each use of a
 * global name: without the proxy, a gateway in a spec starts in two thirds of the processor time.
 * Jest then deletes no globals after a spec file; the process of a suite runs a few files and ends.
 */
export default class PlainGlobalEnvironment extends TestEnvironment {
  constructor(...args) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
  }
}
