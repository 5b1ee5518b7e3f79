// The page puts uPlot into the global scope.
import U from "uplot";

declare global {
  const uPlot: typeof U;
  type uPlot = U;
  namespace uPlot {
    type Options = U.Options;
    type AlignedData = U.AlignedData;
  }
}
